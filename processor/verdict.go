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
// does not send the record again. Otherwise, while the database cannot note a refusal, the worker would send the
// refused record to its receiver again and again.
type verdict struct {
	from       place // where the cursor is, before the record
	delivery   Delivery
	failure    cursor.Failure
	deadLetter bool // the record becomes one, and the process goes on; else it halts
	once       bool // the sink reports it once, so it holds under a later epoch, too
}

// judge decides between a dead letter and a halt. A long run of dead letters is a sign that the fault is not in
// the records: then the process halts.
func (s *shift) judge(d Delivery, f cursor.Failure) verdict {
	v := verdict{from: placeOf(s.lease), delivery: d, failure: f}
	if !s.config.DeadLetter || s.haltsOn(f) {
		return v
	}
	if s.progress.letters >= s.config.DeadLetterRun {
		v.failure.Error = fmt.Sprintf("the %d records before this one became dead letters in a row (dead_letter_run), so the receiver or our address may be wrong and not the records: %s",
			s.progress.letters, f.Error)
		return v
	}
	v.deadLetter = true
	return v
}

// sentence describes what happened to the record, once err is known: the log claims nothing before it is
// durable.
func (v verdict) sentence(err error) string {
	switch {
	case err != nil && !errors.Is(err, errDeferred) && v.deadLetter:
		return "the record could not be kept as a dead letter"
	case err != nil && !errors.Is(err, errDeferred):
		return "the halt could not be written yet"
	case v.deadLetter:
		return "the record was kept as a dead letter"
	default:
		return "the process is halted"
	}
}

// carryOut makes a verdict durable and returns how many records are done with: one if it became a dead letter,
// none if the process halts.
//
// The verdict is kept before it is written, and dropped once it is durable. So whatever ends the write, the
// record is not sent again: TestDeadLetter_IsWrittenLaterWithoutAnotherAttempt,
// TestHalt_IsWrittenLaterWithoutAnotherAttempt.
func (s *shift) carryOut(v verdict) (int, error) {
	s.progress.judged(v)
	if !v.deadLetter {
		return 0, s.halt(v)
	}
	err := s.deadLetter(v)
	if err != nil && cannotBeWritten(err) {
		// No later attempt can write it, so the process halts instead, under the next lease.
		// TestDeadLetter_ThatCannotBeWrittenHaltsAndIsSentOnce
		v.deadLetter = false
		v.failure.Error = fmt.Sprintf("it cannot be kept as a dead letter (%v): %s", err, v.failure.Error)
		s.progress.judged(v)
	}
	return 1, err
}

// keepFinal keeps a halt that came when the lease had ended: the sink does not report it again under a later
// epoch. Any other failure comes again when the record is sent again.
func (s *shift) keepFinal(d Delivery, failure error) {
	if !outcome.IsReportedOnce(failure) {
		return
	}
	now := time.Now()
	s.progress.judged(verdict{from: placeOf(s.lease), delivery: d, once: true, failure: cursor.Failure{
		Position: d.Position, RecordID: d.ID, Attempts: d.Attempt, First: now, Last: now, Error: failure.Error(), Class: cursor.ClassRefused,
	}})
}

// conclude carries out the verdict of an earlier shift that could not be written. It runs after settle, since
// an advance that is owed may lie between the cursor and the record:
// TestLostLease_ALossBehindRecordsWhoseAdvanceFailsHalts. It runs before any call, so the record does not go out
// again. A verdict is void after an operator's decision: TestVerdict_ThatIsNotWrittenIsVoidAfterASeek.
func (s *shift) conclude() error {
	v := s.progress.pending(placeOf(s.lease))
	if v == nil {
		return nil
	}
	_, err := s.carryOut(*v)
	return err
}

// holds reports whether a verdict may be carried out at a place of the cursor. A verdict that a sink reports
// once may be carried out under any epoch, as long as the cursor is before the record: an owed advance over
// earlier records may have been made since.
func (v verdict) holds(at place) bool {
	if v.once {
		return at.position >= v.from.position && at.position < v.delivery.Position
	}
	return at.position == v.from.position && at.epoch == v.delivery.Epoch
}

// halt durably stops the process at the record that failed.
func (s *shift) halt(v verdict) error {
	if err := s.write(func(ctx context.Context) error { return s.lease.Halt(ctx, v.failure) }); err != nil {
		return err
	}
	s.progress.halted()
	s.halted = true
	s.config.observe(Event{Kind: EventHalt, Class: v.failure.Class})
	return errDeferred
}

// deadLetter durably makes a dead letter of the record that failed, and moves the cursor past it: both in one
// transaction, so no record is passed without one.
func (s *shift) deadLetter(v verdict) error {
	d := v.delivery
	row := d.Row()
	if len(row.Payload) > maxLetterBytes {
		return errLetterTooLarge
	}
	from := placeOf(s.lease)
	v.failure.Class = d.letterClass(v.failure.Class)
	letter := cursor.DeadLetter{
		Position:  d.Position,
		Table:     d.Table,
		RecordID:  d.ID,
		Key:       d.Key,
		Type:      row.Type,
		CreatedAt: d.CreatedAt,
		Headers:   row.letterHeaders(),
		Payload:   row.Payload,
		Failure:   v.failure,
	}
	if err := s.write(func(ctx context.Context) error { return s.lease.PutAside(ctx, letter) }); err != nil {
		return err
	}
	s.progress.deadLettered(from, d.Position)
	s.config.observe(Event{Kind: EventDeadLetter, Records: 1, Class: v.failure.Class})
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
