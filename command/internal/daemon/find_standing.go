package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Standing is where a record is in a process.
type Standing string

// The standings.
const (
	StandingNew       Standing = "not_started"  // the process has not run yet
	StandingBefore    Standing = "before_start" // it comes before the place at which the process began
	StandingDelivered Standing = "delivered"
	StandingFailing   Standing = "failing" // it is the next one, and was tried
	StandingNext      Standing = "next"
	StandingFenced    Standing = "fenced"  // it would be next, or wait, and a transaction may still insert a record before it
	StandingWaiting   Standing = "waiting" // others come first
	StandingLetter    Standing = "dead_letter"
	StandingReplayed  Standing = "replayed" // a dead letter that was delivered later
	StandingDiscarded Standing = "discarded"
	StandingSkipped   Standing = "skipped"   // by skip, or by a seek forward
	StandingPutAside  Standing = "put_aside" // its dead letter is not there any more
	StandingPassed    Standing = "passed"    // the cursor is past it, and the audit does not show how
)

// explainer finds out where records are in one process.
type explainer struct {
	process string
	op      *operator.Operator
	source  *table.Source
	born    bool // there is a cursor
	passage operator.Passage
	halts   []operator.Event // of its records
	writers *[]table.Writer  // nil: not asked yet
}

// maxHalts bounds how far back the audit is searched for failures of a record.
const maxHalts = 1000

func newExplainer(ctx context.Context, process string, op *operator.Operator, source *table.Source) (*explainer, error) {
	e := &explainer{process: process, op: op, source: source}
	var err error
	if e.passage, err = op.Since(ctx, process, 0); errors.Is(err, cursor.ErrUnknown) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.born = true
	e.halts, err = op.Events(ctx, process, "halt", maxHalts)
	return e, err
}

// found is a record that is not explained yet.
func (e *explainer) found(r table.Shown) (Found, error) {
	row := e.passage.Row
	history, err := row.Histories.At(r.Position)
	delivery := processor.Delivery{Record: r.Record, History: history}
	return Found{Process: e.process, Record: r, Row: row, DedupKey: delivery.DedupKey()}, err
}

// explain finds out where a record is.
func (e *explainer) explain(ctx context.Context, r *Found) (err error) {
	at := r.Record.Position
	if !e.born || r.Row.Position == cursor.Unplaced {
		r.Standing = StandingNew
		return nil
	}
	letters, err := e.op.LettersOfRecord(ctx, e.process, r.Record.ID, MaxFound)
	if err != nil {
		return err
	}
	r.Letters = slices.DeleteFunc(letters, func(l cursor.DeadLetter) bool { return l.Position != at })
	for _, event := range e.halts {
		if event.To == at && RecordOf(event) != "" {
			r.Halts = append(r.Halts, event)
		}
	}
	amendments, err := e.op.Amendments(ctx, e.process, at, at)
	if err != nil && !denied(err) { // without the right, it is not known
		return err
	}
	for _, a := range amendments {
		if a.DedupKey == r.DedupKey {
			r.Amendment = &a
		}
	}
	if at > r.Row.Position {
		return e.explainWaiting(ctx, r)
	}
	if r.Between, err = e.between(ctx, at, r.Row.Position); err != nil {
		return err
	}
	r.Standing, r.Omitted = passedBy(e.passage.Fate(at), r.Letters)
	return nil
}

// between counts the records after one position, up to and including another.
func (e *explainer) between(ctx context.Context, after, upTo cursor.Position) (int64, error) {
	span, err := e.source.Between(ctx, after, upTo, 1)
	return span.Total, err
}

func (e *explainer) explainWaiting(ctx context.Context, r *Found) error {
	total, err := e.between(ctx, r.Row.Position, r.Record.Position)
	if err != nil {
		return err
	}
	r.Between = max(0, total-1)
	if failure := r.Row.Failure; failure != nil && failure.Position == r.Record.Position && !r.Row.Displaced() {
		r.Standing, r.Failure = StandingFailing, failure
		return nil
	}
	r.Standing = StandingWaiting
	if r.Between == 0 {
		r.Standing = StandingNext
	}
	if e.writers == nil {
		writers, err := e.source.Writers(ctx)
		if err != nil {
			return err
		}
		e.writers = &writers
	}
	for _, w := range *e.writers {
		if w.Since.IsZero() || r.Record.CreatedAt.IsZero() || !w.Since.After(r.Record.CreatedAt) {
			r.Standing = StandingFenced
			r.Writers = append(r.Writers, w)
		}
	}
	return nil
}

// passedBy is how a cursor passed a record. letters are those of it, the newest first.
func passedBy(fate operator.Fate, letters []cursor.DeadLetter) (Standing, *operator.Event) {
	switch omitted := fate.Omitted; {
	case fate.Delivered:
		return StandingDelivered, nil
	case len(letters) > 0 && (omitted == nil || omitted.Action == "dead_letter"):
		return ofLetter(letters[0]), omitted
	case omitted != nil && omitted.Action == "dead_letter":
		return StandingPutAside, omitted
	case omitted != nil:
		return StandingSkipped, omitted
	case fate.Before:
		return StandingBefore, nil
	default:
		return StandingPassed, nil
	}
}

// ofLetter is the standing of a record that was put aside.
func ofLetter(l cursor.DeadLetter) Standing {
	switch l.Resolution {
	case cursor.Replayed:
		return StandingReplayed
	case cursor.Discarded:
		return StandingDiscarded
	default:
		return StandingLetter
	}
}
