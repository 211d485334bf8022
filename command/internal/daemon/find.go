package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Finder looks for records in the processes of a file. It changes nothing. It uses the connections of a StatusReader.
type Finder struct {
	reader    *StatusReader
	op        *operator.Operator
	process   string // the only one; "" for all
	processes []Process
}

// NewFinder makes a finder that looks in one process or, with "", in every process of the file. It returns a *UsageError
// for a process that the file does not have.
func NewFinder(r *StatusReader, process string) (*Finder, error) {
	f := &Finder{reader: r, op: r.Operator(), process: process, processes: r.config.Config.Processes}
	if process != "" {
		names := r.config.Config.Names()
		at := slices.Index(names, process)
		if at < 0 {
			return nil, unknownProcess(process, names)
		}
		f.processes = f.processes[at : at+1]
	}
	return f, nil
}

// Sought names records by one of three.
type Sought struct {
	ID, Key, DedupKey string
	// Payload is how many bytes of the payload are read at most, with the key, the type and the headers. 0 reads none of
	// them.
	Payload int
	// Limit is how many records of all processes are returned at most; 0: MaxFound of each process.
	Limit int
}

// MaxFound bounds how many records of one process Find returns, as those of a key.
const MaxFound = 50

// maxFoundLetters bounds the dead letters of one id, of all processes.
const maxFoundLetters = 500

// Found is a record in one process.
type Found struct {
	Process  string
	Record   table.Shown // without key, headers and payload, unless Sought.Payload asks for them
	DedupKey string
	Standing Standing
	// Gone: only a dead letter has the record. Its row is gone, or has another place now.
	Gone bool
	// Between is how many records are between the cursor and this one, counted up to table.MaxLagRecords. It is 0 for the
	// next one, and for the one that was delivered last.
	Between int64
	// Row is the cursor's row.
	Row cursor.Row
	// Failure is why it fails now, and how often it was tried; nil if it does not.
	Failure *cursor.Failure
	// Halts are events of its earlier failures, the newest first.
	Halts []operator.Event
	// Letters are the dead letters of it, the newest first.
	Letters []cursor.DeadLetter
	// Omitted is the event by which it was passed over; nil if there is none.
	Omitted *operator.Event
	// Amendment is the payload that an operator gave to it; nil if none did, or if the role may not see it.
	Amendment *cursor.Amendment
	// Writers are transactions that may hold it back, if it waits.
	Writers []table.Writer
}

// Search is what was found in one process.
type Search struct {
	Process string
	Found   []Found // the last ones first
	// More reports that there are more than Found has.
	More bool
	// Problem is why it could not be looked for; "" if it could.
	Problem string
}

// Find looks for records in each process. A process that could not be asked has the reason as its Problem. Find returns
// an error, too, if none could be asked.
func (f *Finder) Find(ctx context.Context, s Sought) (all []Search, err error) {
	if _, err := f.reader.Rows(ctx); err != nil {
		return nil, err
	}
	failed, keyless, left := 0, 0, s.Limit
	looked := map[string]lookedUp{}
	for _, p := range f.processes {
		limit := MaxFound
		if s.Limit > 0 {
			limit = min(limit, left)
		}
		one := Search{Process: p.Name}
		found, more, fault := f.in(ctx, p, s, limit, looked)
		one.Found, one.More = found, more
		switch {
		case errors.Is(fault, table.ErrNoKey): // no problem, if another process has a key
			keyless++
			err = cmp.Or(err, fault)
		case fault != nil:
			one.Problem, err = fault.Error(), fault
			failed++
		}
		left -= len(one.Found)
		all = append(all, one)
	}
	if failed+keyless == len(all) {
		return all, Reachable(err)
	}
	if s.ID != "" {
		return f.gone(ctx, s, all)
	}
	return all, nil
}

// in looks in one process, and returns whether there are more records than the limit.
func (f *Finder) in(ctx context.Context, p Process, s Sought, limit int, looked map[string]lookedUp) (all []Found, more bool, err error) {
	source, err := f.source(p, s)
	if err != nil {
		return nil, false, err
	}
	records, err := f.lookUp(ctx, p, source, s, looked)
	if err != nil || len(records) == 0 {
		return nil, false, err
	}
	e, err := newExplainer(ctx, p.Name, f.op, source)
	if err != nil {
		return nil, false, err
	}
	for _, r := range records {
		found, err := e.found(r)
		if err != nil {
			return nil, false, err
		}
		if s.DedupKey != "" && found.DedupKey != s.DedupKey {
			continue
		}
		if len(all) == limit {
			return all, true, nil
		}
		if err := e.explain(ctx, &found); err != nil {
			return nil, false, err
		}
		all = append(all, found)
	}
	return all, false, nil
}

// source is the one that shows records of a process: their keys, or all of them.
func (f *Finder) source(p Process, s Sought) (*table.Source, error) {
	if s.Payload > 0 {
		return f.reader.Source(p.Name)
	}
	return f.reader.sources[p.Name], nil
}

// lookedUp is what a table has.
type lookedUp struct {
	records []table.Shown
	err     error
}

// heldFix is the next step of a role that may see where records are, and not what they hold: `grants --operator`.
const heldFix = "this reads what records hold: connect as the worker's role, or as another that may SELECT the table's columns"

// lookUp finds the records, unless another process has asked the same table for them: many may read one.
func (f *Finder) lookUp(ctx context.Context, p Process, source *table.Source, s Sought, looked map[string]lookedUp) ([]table.Shown, error) {
	c := p.Source
	same := fmt.Sprintf("%q %q %q %q %+v", c.Table, c.Where, c.Order, c.Preset, c.Columns)
	l, has := looked[same]
	if !has {
		l.records, l.err = matching(ctx, source, s)
		if denied(l.err) {
			l.err = fmt.Errorf("%w; %s", l.err, heldFix)
		}
		looked[same] = l
	}
	return l.records, l.err
}

// matching finds the records by the column that has what is sought, one more than MaxFound if there are more.
func matching(ctx context.Context, source *table.Source, s Sought) ([]table.Shown, error) {
	const limit = MaxFound + 1
	switch {
	case s.ID != "":
		return source.ByID(ctx, s.ID, limit, s.Payload)
	case s.Key != "":
		return source.ByKey(ctx, s.Key, limit, s.Payload)
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
	records, err := source.ByID(ctx, rest, limit, s.Payload)
	if at := strings.LastIndexByte(rest, '/'); err == nil && at > 0 {
		var more []table.Shown
		more, err = source.ByID(ctx, rest[:at], limit, s.Payload)
		records = append(records, more...)
	}
	return records, err
}

// gone adds the records with an id that only a dead letter has. Of a process that is not in the file, it adds all that
// have one.
func (f *Finder) gone(ctx context.Context, s Sought, all []Search) ([]Search, error) {
	letters, err := f.op.LettersOfRecord(ctx, f.process, s.ID, maxFoundLetters)
	if err != nil {
		return all, err
	}
	known := len(all)
	for _, l := range letters {
		at := slices.IndexFunc(all, func(one Search) bool { return one.Process == l.Process })
		if at < 0 {
			at, all = len(all), append(all, Search{Process: l.Process})
		}
		one := &all[at]
		has := func(r Found) bool { return r.Record.Position == l.Position }
		switch {
		case one.Problem != "", one.More, slices.ContainsFunc(one.Found, has):
			continue
		case len(one.Found) == MaxFound:
			one.More = true
			continue
		}
		r := Found{Process: l.Process, Record: table.Shown{Record: processor.OfLetter(l)}, DedupKey: processor.Delivery{Record: processor.OfLetter(l)}.DedupKey(), Gone: at < known, Letters: []cursor.DeadLetter{l}}
		r.Standing = ofLetter(l)
		one.Found = append(one.Found, r)
	}
	return all, nil
}
