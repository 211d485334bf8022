package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
)

// verdict is the decision about a record that failed for good. Until it is durable, the worker keeps it and
// does not send the record again. Otherwise a worker would ask a receiver that has refused a record without
// end, because the database cannot note the refusal.
type verdict struct {
	from     cursor.Position // where the cursor is, before the record
	delivery Delivery
	failure  cursor.Failure
	aside    bool // a dead letter, and the process goes on; else it halts
	final    bool // the sink reports it once, so it holds under a later epoch, too
}

// judge decides between a dead letter and a halt. A long run of dead letters is a sign that the fault is not in
// the records: then the process halts.
func (s *shift) judge(d Delivery, f cursor.Failure) verdict {
	v := verdict{from: s.lease.Position(), delivery: d, failure: f}
	if !s.config.DeadLetter || s.haltsOn(f) {
		return v
	}
	if s.letters >= s.config.DeadLetterRun {
		v.failure.Error = fmt.Sprintf("the %d records before this one became dead letters in a row (dead_letter_run), so the receiver or our address may be wrong and not the records: %s",
			s.letters, f.Error)
		return v
	}
	v.aside = true
	return v
}

// sentence describes what happened to the record, once err is known: the log claims nothing before it is
// durable.
func (v verdict) sentence(err error) string {
	switch {
	case err != nil && !errors.Is(err, errSetAside) && v.aside:
		return "the record could not be put aside as a dead letter"
	case err != nil && !errors.Is(err, errSetAside):
		return "the halt could not be written yet"
	case v.aside:
		return "the record was put aside as a dead letter"
	default:
		return "the process is halted"
	}
}

// carryOut makes a verdict durable and returns how many records are done with: one if it was put aside, none if
// the process halts.
func (s *shift) carryOut(v verdict) (int, error) {
	s.verdict = &v
	if !v.aside {
		return 0, s.halt(v)
	}
	err := s.putAside(v)
	if err != nil && cannotBeWritten(err) {
		v.aside = false
		v.failure.Error = fmt.Sprintf("it cannot be put aside as a dead letter (%v): %s", err, v.failure.Error)
		s.verdict = &v
	}
	return 1, err
}

// keepFinal keeps a halt that came when the lease had ended: the sink does not report it again under a later
// epoch.
func (s *shift) keepFinal(d Delivery, failure error) {
	if !outcome.IsFinal(failure) {
		return
	}
	now := time.Now()
	s.verdict = &verdict{from: s.lease.Position(), delivery: d, final: true, failure: cursor.Failure{
		Position: d.Position, RecordID: d.ID, Attempts: d.Attempt, First: now, Last: now, Error: failure.Error(), Class: cursor.ClassRefused,
	}}
}

// conclude carries out the verdict of an earlier shift that could not be written. The verdict is void if
// another worker or an operator moved the cursor since, or had the lease and may have decided.
func (s *shift) conclude() error {
	v := s.verdict
	s.verdict = nil
	if v == nil || !v.holds(s.lease) {
		return nil
	}
	_, err := s.carryOut(*v)
	return err
}

// holds reports whether this lease may carry out a verdict. A verdict that a sink reports once may be carried
// out under any epoch, as long as the cursor is before the record: an owed advance over earlier records may
// have been made since.
func (v verdict) holds(lease *cursor.Lease) bool {
	position := lease.Position()
	if v.final {
		return position >= v.from && position < v.delivery.Position
	}
	return position == v.from && v.delivery.Epoch == lease.Epoch()
}

// unless returns the verdict, or nil if the process is halted at its record: the answer to the COMMIT of the
// halt may have been lost, or another worker may have reached the same verdict. So no worker carries it out
// again after an operator has decided.
func (v *verdict) unless(halt *HaltError) *verdict {
	if v != nil && halt != nil && halt.Failure.Position == v.delivery.Position {
		return nil
	}
	return v
}

// halt durably stops the process at the record that failed.
func (s *shift) halt(v verdict) error {
	if err := s.write(func(ctx context.Context) error { return s.lease.Halt(ctx, v.failure) }); err != nil {
		return err
	}
	s.verdict, s.stopped = nil, true
	s.observe(Event{Kind: EventHalt, Class: v.failure.Class})
	return errSetAside
}

// putAside durably makes a dead letter of the record that failed, and moves the cursor past it.
func (s *shift) putAside(v verdict) error {
	d := v.delivery
	if len(d.Payload) > maxLetterBytes {
		return errLetterTooLarge
	}
	letter := cursor.DeadLetter{
		Position:  d.Position,
		Table:     d.Table,
		RecordID:  d.ID,
		Key:       d.Key,
		Type:      d.Type,
		CreatedAt: d.CreatedAt,
		Headers:   d.Headers,
		Payload:   d.Payload,
		Failure:   v.failure,
	}
	err := s.write(func(ctx context.Context) error { return s.lease.PutAside(ctx, letter) })
	if err != nil {
		return err
	}
	s.verdict, s.stuck = nil, nil
	s.letters++
	s.doubt = s.doubt.past(v.from, d.Position, 1)
	s.sent.past(v.from, d.Position)
	s.observe(Event{Kind: EventDeadLetter, Records: 1, Class: v.failure.Class})
	return context.Cause(s.lease.Context())
}

// maxLetterBytes is the largest payload of a dead letter. A client that shows or dumps it gets hexadecimal
// digits in one message. PostgreSQL limits a message to 1 GB, and ends the session over a longer one.
const maxLetterBytes = 500_000_000

var errLetterTooLarge = fmt.Errorf("a dead letter holds a payload of at most %d bytes", maxLetterBytes)

// cannotBeWritten reports that a dead letter was refused in a way that will not pass: there is no table, no
// grant, or the table does not take a value.
func cannotBeWritten(err error) bool {
	const canceled = "57014" // by a time-out or an operator: another attempt may succeed
	var pgErr *pgconn.PgError
	return errors.Is(err, errLetterTooLarge) || errors.As(err, &pgErr) && !isDatabase(err) && pgErr.Code != canceled
}
