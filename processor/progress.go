package processor

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// progress is what one worker knows of its delivery beyond the cursor's row. It is a value with rules: no method
// calls the sink or the database. The row is the truth, so each field names the place of the cursor for which
// it holds, and is void at any other place.
//
//	field     meaning                                   set by                      cleared by
//	owed      acknowledged, and not known as durable    acknowledged, undone        advanced; due, if void
//	verdict   failed for good, and not yet written      judged                      halted, deadLettered, haltSeen; pending, if void
//	stuck     the failing record, and its back-off      failed, recalled            advanced, deadLettered, writtenOff, recalled
//	doubt     the next records that may have arrived    attempted, leased           every move over them
//	sent      the next records that have numbers        attempted, recalled         every move over them; recalled, if void
//	bridge    what was just passed without a record     passedOver, writtenOff      the next move
//	letters   dead letters in a row                     deadLettered                advanced, leased in a new epoch
//	failures  failed attempts in a row, of any record   failed, recalled            advanced
//	epoch     of the last lease                         leased                      -
//	amended   the next record that was amended          amend                       amend, in a new epoch or past it
//
// What is left when this worker gets its next lease:
//
//	field     no other worker between      after another worker, or an operator's decision (a new epoch)
//	owed      made good without the sink   void: the row shows where to go on
//	verdict   carried out                  void; one that the sink reports once holds while the cursor is before it
//	stuck     as the row has it            as the row has it
//	doubt     the same                     at least one chunk after another worker; the same after an operator's retry
//	sent      the same                     what the cursor did not pass, if the sequence fits; else the row's failing record
//	bridge    the same                     void
//	letters   the same                     0
//	failures  the same                     at least the attempts that the row has
//	amended   the same                     void
//
// A program that starts again has none of it. Its first lease is like one after another worker.
//
// With an InTx sink nothing leaves the transaction: doubt and sent stay empty, and an advance is owed only if
// the effects were committed without it.
type progress struct {
	atomic bool // the sink is InTx

	owed     *step
	verdict  *verdict
	stuck    *stuck
	doubt    doubt
	sent     sent
	bridge   bridge
	letters  int
	failures int
	epoch    cursor.Epoch // 0 before the first lease
	amended  amended
}

// place is where the cursor is.
type place struct {
	epoch    cursor.Epoch
	position cursor.Position
	sequence int64
}

// placeOf returns where the cursor is under a lease.
func placeOf(lease *cursor.Lease) place {
	return place{lease.Epoch(), lease.Position(), lease.Sequence()}
}

// step is an advance over n acknowledged records.
type step struct {
	from    place
	to      cursor.Position
	n       int64
	created time.Time // when the last of them was created
}

// stepOver is the advance over acknowledged deliveries.
func stepOver(from place, ds []Delivery) step {
	last := ds[len(ds)-1]
	return step{from: from, to: last.Position, n: int64(len(ds)), created: last.CreatedAt}
}

// leased notes that this worker has the lease at a place; seen is the row as it was before. An earlier worker, or
// an earlier run of this one under the same name, may have ended between a call and the advance after it. Then
// as many records are in doubt as it may have sent: inFlight.
func (p *progress) leased(seen cursor.Row, at place, inFlight int) {
	unused := seen.Holder == "" && at.epoch <= seen.Epoch+1 // no worker has had the cursor yet
	if tookOver := p.epoch == 0 || at.epoch != seen.Epoch; tookOver && !unused && !p.atomic {
		p.doubt = doubt{at.position, inFlight}
	}
	if at.epoch != p.epoch {
		p.letters = 0
	}
	p.epoch = at.epoch
}

// recalled takes over the failing record of the row, even if another worker wrote it there, and forgets what
// memory holds instead.
func (p *progress) recalled(at place, f *cursor.Failure, config Retry) {
	known := p.stuck
	p.stuck = nil
	if !p.atomic {
		p.sent.recall(at, f)
	}
	if f != nil {
		p.stuck = newStuck(f.Position, f.Attempts, config)
		p.stuck.unreached = known.excused(*f)
		p.failures = max(p.failures, f.Attempts)
	}
}

// due returns the advance that is owed at a place, or nil. An advance that was left at another place is void:
// its commit succeeded after all, or another worker or an operator moved the cursor.
func (p *progress) due(at place) *step {
	if p.owed != nil && (p.owed.from.epoch != at.epoch || p.owed.from.position != at.position) {
		p.owed = nil
	}
	return p.owed
}

// pending returns the verdict that is to be carried out at a place, or nil. A verdict is void if another worker
// or an operator has moved the cursor since, or had the lease and may have decided.
func (p *progress) pending(at place) *verdict {
	if p.verdict != nil && !p.verdict.holds(at) {
		p.verdict = nil
	}
	return p.verdict
}

// haltSeen drops the verdict if the row has a halt at its record. The answer to the COMMIT of the halt may have
// been lost, or another worker may have reached the same verdict. So no worker carries it out again after an
// operator has decided.
func (p *progress) haltSeen(at cursor.Position) {
	if p.verdict != nil && p.verdict.delivery.Position == at {
		p.verdict = nil
	}
}

// attempts is how many attempts at a record have failed.
func (p *progress) attempts(at cursor.Position) int {
	if p.stuck.at(at) {
		return p.stuck.attempts
	}
	return 0
}

// attempted notes the records after a position with which the sink was called. open reports that the outcome of
// the last call is unknown.
func (p *progress) attempted(after cursor.Position, called []Delivery, open bool) {
	if p.atomic || len(called) == 0 {
		return
	}
	if open && len(called) > p.doubt.at(after) {
		p.doubt = doubt{after, len(called)}
	}
	if p.sent.after != after || len(called) >= len(p.sent.positions) {
		p.sent.note(after, called)
	}
}

// acknowledged notes that the sink has the records of a step for good. The step is owed until it is durable, so
// that the records do not go out again. What is atomic is not owed: if the advance fails, its effects are
// undone.
func (p *progress) acknowledged(made step) {
	if !p.atomic {
		p.owed = &made
	}
}

// undone notes that the effects of a step were committed, and the advance beside them was not.
func (p *progress) undone(made step) { p.owed = &made }

// advanced notes that a step is durable. It returns how many attempts had failed before.
func (p *progress) advanced(made step) (failed int) {
	if p.stuck != nil {
		failed = p.stuck.attempts
	}
	p.owed, p.stuck, p.failures, p.letters = nil, nil, 0, 0
	p.moved(made.from, made.to, int(made.n))
	return failed
}

// passedOver notes that the cursor has durably passed a stretch without a record.
func (p *progress) passedOver(from place, to cursor.Position) {
	p.bridge = bridge{epoch: from.epoch, from: p.bridge.before(from), to: to}
	p.moved(from, to, 0)
}

// writtenOff notes that the cursor has durably passed n records that were sent and are gone.
func (p *progress) writtenOff(from place, to cursor.Position, n int) {
	p.bridge = bridge{epoch: from.epoch, from: p.bridge.before(from), to: to}
	p.stuck = nil
	p.moved(from, to, n)
}

// moved takes the records that the cursor has passed off those in doubt and those sent.
func (p *progress) moved(from place, to cursor.Position, n int) {
	p.doubt = p.doubt.past(from.position, to, n)
	p.sent.past(from.position, to)
}

// failed counts a failed attempt at a record and returns the delay before the next one.
func (p *progress) failed(at cursor.Position, failure error, class cursor.Class, config Retry) time.Duration {
	if !p.stuck.at(at) {
		p.stuck = newStuck(at, 0, config)
	}
	p.failures++
	if class == cursor.ClassUnreached {
		p.stuck.unreached++
	}
	return p.stuck.again(failure)
}

// judged keeps a verdict until it is durable, so that the record is not sent again meanwhile.
func (p *progress) judged(v verdict) { p.verdict = &v }

// halted notes that the halt of the verdict is durable. What was sent and what is in doubt stay so: an operator
// may have the record sent again.
func (p *progress) halted() { p.verdict = nil }

// deadLettered notes that the verdict's record is a durable dead letter, and the cursor is past it.
func (p *progress) deadLettered(from place, at cursor.Position) {
	p.verdict, p.stuck = nil, nil
	p.letters++
	p.moved(from, at, 1)
}
