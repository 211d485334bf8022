package processor

import (
	"context"
	"errors"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// deliver hands records over chunk by chunk, and advances after each acknowledged part. It returns when all are
// delivered, when the process has to stop, or when the shift is over.
//
// If the process has to stop, records may be left. None of those after them goes out, because ending stays true
// until the shift is over. A step of the clock, too, is only forgotten by the next shift: see clock.go.
func (s *shift) deliver(records []Record) error {
	for len(records) > 0 && !s.ending() {
		done, err := s.deliverChunk(records)
		if err != nil {
			return err
		}
		letGo(records[:done])
		records = records[done:]
	}
	return nil
}

// deliverChunk hands over the first of the records, as many as go together, and returns how many are done with.
//
// The order of its steps is the promise of the loop: the numbers of records that are gone are written off before
// a number is given; a record that was amended is prepared with its new payload; what the sink was called with is noted before anything is written; the advance over the
// acknowledged records is durable before the failure of the next one is written, since the row names the record
// after the cursor.
func (s *shift) deliverChunk(records []Record) (done int, err error) {
	if err := s.writeOff(s.progress.sent.gone(s.lease.Position(), records[0].Position)); err != nil {
		return 0, err // TestSequence_NoNumberStandsForTwoRecordsWhenARowIsDeleted
	}
	if err := s.amend(records); err != nil {
		return 0, err
	}
	if failure := s.prepareNext(records); failure != nil {
		return s.failed(s.deliveries(records[:1])[0], failure) // TestPrepare_AnOutageIsTriedAgainAndNothingPassesTheRecord
	}
	n := s.chunk(records)
	if err := s.admit(n); err != nil || s.ending() {
		return 0, err
	}
	ds := s.deliveries(records[:n])
	defer clear(ds) // payloads may be large
	acknowledged, failure := s.hand(ds)
	s.attempted(s.lease.Position(), ds, acknowledged, failure)
	if acknowledged > 0 {
		made := stepOver(placeOf(s.lease), ds[:acknowledged])
		s.progress.acknowledged(made)
		if err := s.advance(made); err != nil {
			if failure != nil {
				s.keepFinal(ds[acknowledged], failure) // TestLostLease_ALossBehindRecordsWhoseAdvanceFailsHalts
			}
			return 0, err
		}
	}
	if failure == nil {
		return acknowledged, nil
	}
	passed, err := s.failed(ds[acknowledged], failure)
	return acknowledged + passed, err
}

// chunk is how many of the records go together: at most those of one advance, of the same fate, and ready. A record
// that could not be read goes alone, none goes with records after one that is gone, and one that may be amended is the
// first.
func (s *shift) chunk(records []Record) int {
	n := readable(records[:s.config.readyOnes(records[:min(len(records), s.chunkLimit())])])
	n = s.progress.amended.unamended(records, n)
	return s.progress.sent.whole(s.lease.Position(), records, n)
}

// readable is how many records go out together: those before the first one that the source could not read, or
// that one alone.
func readable(records []Record) int {
	for i := range records {
		if records[i].Fault != nil {
			return max(i, 1)
		}
	}
	return len(records)
}

// deliveries returns the deliveries of records. They are valid until the next call.
func (s *shift) deliveries(records []Record) []Delivery {
	s.handed = slices.Grow(s.handed[:0], len(records))
	ds := s.handed[:len(records)]
	at, worker, origin := placeOf(s.lease), s.config.Store.Worker(), s.lease.Origin()
	after, doubtful := s.progress.bridge.before(at), s.progress.doubt.at(at.position)
	for i := range records { // field by field, which avoids a copy
		d := &ds[i]
		d.Record, d.Process, d.Worker, d.Origin, d.Epoch, d.After = records[i], s.config.Process, worker, origin, at.epoch, after
		d.Sequence, d.Attempt, d.Unknown, d.History = at.sequence+1+int64(i), 1, i < doubtful, s.lease.History(records[i].Position)
		after = records[i].Position
	}
	ds[0].Attempt += s.progress.attempts(records[0].Position)
	return ds
}

// attempted notes with which records the sink was called, n of which are acknowledged. For a record that the
// source could not read there was no call.
func (s *shift) attempted(after cursor.Position, ds []Delivery, n int, failure error) {
	if ds[0].Fault != nil {
		return
	}
	called := ds[:s.config.Dispatch.called(n, len(ds), failure)]
	s.progress.attempted(after, called, failure != nil && s.open(failure))
}

// open reports whether a failed call leaves its outcome unknown: by time-out or outage, or because the lease or
// the process ended.
func (s *shift) open(failure error) bool {
	return context.Cause(s.calls) != nil || s.classOf(failure) == cursor.ClassUnknown || outcome.IsOutage(failure)
}

// advance makes a step durable. If that fails, the sink does not get its records again unless another worker
// came in between: see settle.
func (s *shift) advance(made step) error {
	err := s.write(func(ctx context.Context) error { return s.lease.Advance(ctx, made.to, made.n) })
	if errors.Is(err, cursor.ErrUndone) {
		s.progress.undone(made)
	}
	if err != nil {
		return err
	}
	*s.reader.numbers = s.reader.numbers.Advanced(s.lease)
	failed := s.progress.advanced(made)
	s.config.observe(Event{Kind: EventAdvance, Records: int(made.n), Created: made.created})
	if failed > 0 {
		s.log.Info("delivered after failures", "position", visible.Cut(string(made.to)), "attempt", failed+1)
	}
	return context.Cause(s.lease.Context())
}

// settle makes the advance that an earlier shift still owes, before anything is sent under this lease.
//
//   - Nothing is owed, or the row is not where the step began. The commit succeeded after all, or another worker
//     or an operator moved the cursor: the row is right, and memory is not. TestAdvance_WhoseCommitIsUnknownIsLookedUp,
//     TestSeek_IsNotUndoneByAnAdvanceThatIsOwed
//   - The row takes the step. The sink acknowledged these records, so none is lost, and none is sent again.
//     TestAdvance_IsTriedAgainAloneWhenTheSinkHadSucceeded
//   - The row does not take it, although the lease holds the lock: foreign code keeps it from the row. It stays
//     owed, and the sink is not called before that code is gone. TestAdvance_ThatIsKeptFromTheRowSendsNothingAgain
//   - Any other error leaves the outcome open: the next lease looks at the row again.
func (s *shift) settle() error {
	owed := s.progress.due(placeOf(s.lease))
	if owed == nil {
		return nil
	}
	err := s.advance(*owed)
	if errors.Is(err, cursor.ErrUnmoved) {
		return s.kept(err)
	}
	return err
}

// chunkLimit is how many records go out before the next advance, at most.
func (s *shift) chunkLimit() int {
	n := s.config.Dispatch.chunk(s.config)
	if s.limiter != nil {
		n = min(n, s.limiter.Burst())
	}
	if s.config.Breaker.open(s.progress.failures) {
		n = 1
	}
	return n
}
