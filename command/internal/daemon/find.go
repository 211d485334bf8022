package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Finder looks for one record in the processes of a file. It changes nothing. The caller closes it.
type Finder struct {
	config    Config
	processes []Process
	pool      *pgxpool.Pool
	store     *cursor.Store
	op        *operator.Operator
	sources   map[string]*table.Source
}

// NewFinder makes the pool. It does not connect yet. With "", it looks in every process of the file. It returns a
// *UsageError for a process that the file does not have.
func NewFinder(ctx context.Context, c Config, process string) (*Finder, error) {
	f := &Finder{config: c, processes: c.Processes, sources: map[string]*table.Source{}}
	if process != "" {
		at := slices.Index(c.Names(), process)
		if at < 0 {
			return nil, unknownProcess(process, c.Names())
		}
		f.processes = c.Processes[at : at+1]
	}
	var err error
	if f.pool, f.store, err = c.open(ctx); err != nil {
		return nil, err
	}
	f.op = operator.New(f.store)
	for _, p := range f.processes {
		if f.sources[p.Name], err = c.keys(p, f.pool); err != nil {
			f.pool.Close()
			return nil, &UsageError{err}
		}
	}
	return f, nil
}

// Close closes the connections.
func (f *Finder) Close() { f.pool.Close() }

// Sought names a record by one of three.
type Sought struct {
	ID, Key, DedupKey string
	// Payload has the payload, the key and the headers read as well.
	Payload bool
}

// MaxFound bounds how many records of one process Find returns, as those of a key.
const MaxFound = 20

// Found is a record in one process.
type Found struct {
	Process  string
	Record   processor.Record // without key, headers and payload, unless Sought.Payload
	DedupKey string
	Standing Standing
	// Between is how many records are between the cursor and this one, counted up to table.MaxLagRecords. It is 0 for the
	// next one, and for the one that was delivered last.
	Between int64
	// Row is the cursor's row.
	Row cursor.Row
	// Failure is why it fails now, and how often it was tried; nil if it does not.
	Failure *cursor.Failure
	// Halts are events of its earlier failures, the newest first.
	Halts []operator.Event
	// Letters are the dead letters of it.
	Letters []cursor.DeadLetter
	// Omitted is the event by which it was passed over; nil if there is none.
	Omitted *operator.Event
	// Amendment is the payload that an operator gave to it; nil if none did, or if the role may not see it.
	Amendment *cursor.Amendment
	// Writers are transactions that may hold it back, if it waits.
	Writers []table.Writer
}

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
	StandingSkipped   Standing = "skipped" // by skip, or by a seek forward
	StandingPassed    Standing = "passed"  // the cursor is past it, and the audit does not show how
)

// Search is what Find found in one process.
type Search struct {
	Process string
	Table   string // as the file has it
	Found   []Found
	// Problem is why it could not be looked for; "" if it could.
	Problem string
}

// Find looks for a record in each process. A process that could not be asked has the reason as its Problem. Find
// returns an error only if none could be asked.
func (f *Finder) Find(ctx context.Context, s Sought) (all []Search, err error) {
	failed := 0
	for _, p := range f.processes {
		one := Search{Process: p.Name, Table: p.Source.Table}
		if one.Found, err = f.in(ctx, p, s); err != nil {
			one.Problem = err.Error()
			failed++
		}
		all = append(all, one)
	}
	if failed < len(all) {
		err = nil
	}
	return all, Reachable(err)
}

func (f *Finder) in(ctx context.Context, p Process, s Sought) ([]Found, error) {
	source := f.sources[p.Name]
	records, err := f.lookUp(ctx, source, s)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	row, err := f.store.Look(ctx, p.Name)
	unknown := errors.Is(err, cursor.ErrUnknown)
	if err != nil && !unknown {
		return nil, err
	}
	var passage operator.Passage
	if !unknown {
		if passage, err = f.op.Since(ctx, p.Name, 0); err != nil {
			return nil, err
		}
		row = passage.Row
	}
	var all []Found
	for _, r := range records {
		history, err := row.Histories.At(r.Position)
		if err != nil {
			return nil, err
		}
		found := Found{Process: p.Name, Record: r, Row: row, DedupKey: processor.Delivery{Record: r, History: history}.DedupKey()}
		if s.DedupKey != "" && found.DedupKey != s.DedupKey {
			continue
		}
		if err := f.explain(ctx, &found, source, passage, unknown); err != nil {
			return nil, err
		}
		if s.Payload {
			if err := f.read(ctx, p, &found); err != nil {
				return nil, err
			}
		}
		all = append(all, found)
	}
	return all, nil
}

// lookUp finds the records by the column that has what is sought.
func (f *Finder) lookUp(ctx context.Context, source *table.Source, s Sought) ([]processor.Record, error) {
	switch {
	case s.ID != "":
		return source.ByID(ctx, s.ID, MaxFound)
	case s.Key != "":
		records, err := source.ByKey(ctx, s.Key, MaxFound)
		if errors.Is(err, table.ErrNoKey) && len(f.processes) > 1 {
			return nil, nil
		}
		return records, err
	}
	name, err := source.Name(ctx)
	if err != nil {
		return nil, err
	}
	rest, ours := strings.CutPrefix(s.DedupKey, name+"/")
	if !ours {
		return nil, nil
	}
	// The id may have a slash itself, and what follows it is the time, the mark of a history, or nothing.
	records, err := source.ByID(ctx, rest, MaxFound)
	if at := strings.LastIndexByte(rest, '/'); err == nil && at > 0 {
		var more []processor.Record
		more, err = source.ByID(ctx, rest[:at], MaxFound)
		records = append(records, more...)
	}
	return records, err
}

// explain finds out where a record is.
func (f *Finder) explain(ctx context.Context, r *Found, source *table.Source, passage operator.Passage, unknown bool) (err error) {
	at := r.Record.Position
	if unknown || r.Row.Position == cursor.Unplaced {
		r.Standing = StandingNew
		return nil
	}
	if r.Letters, err = f.op.DeadLettersAt(ctx, r.Process, at, MaxFound); err != nil {
		return err
	}
	if r.Halts, err = f.halts(ctx, r.Process, at); err != nil {
		return err
	}
	if amendments, err := f.op.Amendments(ctx, r.Process, at, at); err == nil { // without the right, it is not known
		for _, a := range amendments {
			if a.DedupKey == r.DedupKey {
				r.Amendment = &a
			}
		}
	}
	if at > r.Row.Position {
		return f.explainWaiting(ctx, r, source)
	}
	if r.Between, err = between(ctx, source, at, r.Row.Position); err != nil {
		return err
	}
	r.Standing, r.Omitted = passedBy(passage.Fate(at), r.Letters)
	return nil
}

// between counts the records after one position, up to and including another.
func between(ctx context.Context, source *table.Source, after, upTo cursor.Position) (int64, error) {
	span, err := source.Between(ctx, after, upTo, 1)
	return span.Total, err
}

func (f *Finder) explainWaiting(ctx context.Context, r *Found, source *table.Source) error {
	total, err := between(ctx, source, r.Row.Position, r.Record.Position)
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
	writers, err := source.Writers(ctx)
	if err != nil {
		return err
	}
	for _, w := range writers {
		if w.Since.IsZero() || r.Record.CreatedAt.IsZero() || !w.Since.After(r.Record.CreatedAt) {
			r.Standing = StandingFenced
			r.Writers = append(r.Writers, w)
		}
	}
	return nil
}

// passedBy is how a cursor passed a record.
func passedBy(fate operator.Fate, letters []cursor.DeadLetter) (Standing, *operator.Event) {
	switch omitted := fate.Omitted; {
	case fate.Delivered:
		return StandingDelivered, nil
	case len(letters) > 0 && (omitted == nil || omitted.Action == "dead_letter"):
		switch letters[len(letters)-1].Resolution {
		case cursor.Replayed:
			return StandingReplayed, omitted
		case cursor.Discarded:
			return StandingDiscarded, omitted
		}
		return StandingLetter, omitted
	case omitted != nil:
		return StandingSkipped, omitted
	case fate.Before:
		return StandingBefore, nil
	default:
		return StandingPassed, nil
	}
}

// maxHalts bounds how far back the audit is searched for failures of a record.
const maxHalts = 1000

func (f *Finder) halts(ctx context.Context, process string, at cursor.Position) (of []operator.Event, err error) {
	all, err := f.op.Events(ctx, process, "halt", maxHalts)
	for _, e := range all {
		if e.To == at && RecordOf(e) != "" {
			of = append(of, e)
		}
	}
	return of, err
}

// read reads the content of a record.
func (f *Finder) read(ctx context.Context, p Process, r *Found) error {
	config := p.Source
	config.Delivered = true // it is committed, as it was found
	source, err := f.config.sourceOf(p, config, f.pool, nil)
	if err != nil {
		return err
	}
	before, err := source.Back(ctx, r.Record.Position, 1)
	if err != nil {
		return err
	}
	page, err := source.Read(ctx, before, 1)
	if err != nil {
		return err
	}
	if len(page.Records) == 0 || page.Records[0].Position != r.Record.Position {
		return fmt.Errorf("record %s was deleted meanwhile", visible.Short(r.Record.ID))
	}
	r.Record = page.Records[0]
	return nil
}
