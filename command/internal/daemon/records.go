package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Records shows again what one process has delivered. It changes nothing.
type Records struct {
	process Process
	op      *operator.Operator
	source  *table.Source
	prepare processor.Prepare // nil: records go out as they are
}

// Ask is a question for records.
type Ask struct {
	// After is the last sequence that the receiver has.
	After int64
	// From is the place to go on from, as an earlier answer ended with; "" for the beginning.
	From cursor.Position
	// Limit bounds the number of records, from 1 on.
	Limit int
	// Pruned accepts that retention has removed some of them.
	Pruned bool
}

// MaxShown bounds the number of records of one answer.
const MaxShown = 100_000

// Errors of Find that do not pass by themselves.
var (
	// ErrNumber: it is not known where the cursor was when its sequence was at that number.
	ErrNumber = errors.New("the place of this number is not known")
	// ErrRemoved: retention has removed records that the answer would lack.
	ErrRemoved = errors.New("records of the answer are gone")
)

// records makes what answers questions about one process.
func (c Config) records(p Process, pool *pgxpool.Pool, store *cursor.Store) (*Records, error) {
	config := p.Source
	config.Delivered = true
	source, err := c.sourceOf(p, config, pool, nil)
	if err != nil {
		return nil, err
	}
	prepare, err := p.prepare()
	return &Records{process: p, op: operator.New(store), source: source, prepare: prepare}, err
}

// ShowRecords writes the records that a process delivered after a number of its sequence.
func ShowRecords(ctx context.Context, c Config, process string, ask Ask, w io.Writer) error {
	at := slices.Index(c.Names(), process)
	if at < 0 {
		return unknownProcess(process, c.Names())
	}
	pool, store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	records, err := c.records(c.Processes[at], pool, store)
	if err != nil {
		return &UsageError{err}
	}
	answer, err := records.Find(ctx, ask)
	if errors.Is(err, cursor.ErrUnknown) {
		return usage("%s has not run yet, so it has delivered nothing", visible.Line(process))
	}
	if err != nil {
		return Reachable(err)
	}
	return Reachable(answer.Write(ctx, w))
}

// Answer is what is to be shown.
type Answer struct {
	*Records
	ask       Ask
	row       cursor.Row
	delivered []operator.Stretch
	omitted   []operator.Event
}

// Find looks up where the records begin, and which of those after it were delivered. It returns cursor.ErrUnknown if the
// process has no cursor.
func (r *Records) Find(ctx context.Context, ask Ask) (*Answer, error) {
	passage, err := r.op.Since(ctx, r.process.Name, ask.After)
	if err != nil {
		return nil, err
	}
	a := &Answer{Records: r, ask: ask, row: passage.Row}
	if a.row.Position == cursor.Unplaced {
		return a, nil
	}
	if ask.From != "" && !table.SameOrder(ask.From, a.row.Position) {
		return nil, fmt.Errorf("%w: no answer about this process ends at the place to go on from", ErrNumber)
	}
	at, first := passage.Anchor, cursor.Position("")
	if passage.Back > table.MaxLagRecords {
		return nil, fmt.Errorf("%w: it is %d records back, and at most %d are looked up: `seek` to where delivery shall go on", ErrNumber, passage.Back, table.MaxLagRecords)
	}
	if passage.Back > 0 {
		if at, first, err = r.source.Recent(ctx, passage.Anchor, passage.Back, passage.Floor); err != nil {
			return nil, err
		}
		if first == "" && !passage.Certain {
			return nil, fmt.Errorf("%w: rows are gone since then, or it is from before a seek or a failover under an older version: `seek` to where delivery shall go on", ErrNumber)
		}
	}
	if err := r.kept(ctx, a, at, first); err != nil {
		return nil, err
	}
	a.delivered, a.omitted = passage.After(at)
	for _, s := range a.delivered {
		if s.After != "" && !table.SameOrder(s.After, s.UpTo) {
			return nil, fmt.Errorf("%w: the order of the source was changed since then: `seek` to where delivery shall go on", ErrNumber)
		}
	}
	return a, nil
}

// kept returns an error if retention has removed records after a place. first is the position of the first one that
// counts; "" if it is not known.
func (r *Records) kept(ctx context.Context, a *Answer, at, first cursor.Position) error {
	if a.ask.Pruned || at >= a.row.Position {
		return nil
	}
	name, err := r.source.Name(ctx)
	if err != nil {
		return err
	}
	all, err := r.op.PrunedAround(ctx, name)
	if err != nil || len(all) == 0 {
		return err
	}
	i := slices.IndexFunc(all, func(p operator.Pruned) bool { return table.SameOrder(p.Through, a.row.Position) })
	switch {
	case i < 0:
		return fmt.Errorf("%w, or may be: %s, a place that cannot be compared with those of this process. To get what is there, ask again with --pruned, or pruned=true", ErrRemoved, all[0])
	case at >= all[i].Through || first > all[i].Through:
		return nil
	default:
		return fmt.Errorf("%w: %s. To get the others, ask again with --pruned, or pruned=true", ErrRemoved, all[i])
	}
}

const (
	readAtOnce  = 100      // records
	answerBytes = 16 << 20 // of payloads, and one more
)

// Write writes the answer: a line for each record, in order, and one for each place where records were passed without
// a delivery. The last line says whether there are more. After an error it is missing.
func (a *Answer) Write(ctx context.Context, w io.Writer) error {
	left, bytes := a.ask.Limit, answerBytes
	omitted := a.omitted
	for _, s := range a.delivered {
		var err error
		if omitted, err = a.omit(w, omitted, func(e operator.Event) bool { return e.From <= s.After }); err != nil {
			return err
		}
		after := max(s.After, a.ask.From)
		for after < s.UpTo {
			if left <= 0 || bytes <= 0 {
				return writeJSON(w, lastLine{lastPlace{From: after}})
			}
			page, err := a.source.Read(ctx, after, min(left, readAtOnce))
			if err != nil {
				return err
			}
			within := slices.DeleteFunc(page.Records, func(r processor.Record) bool { return r.Position > s.UpTo })
			for _, record := range within {
				if bytes <= 0 {
					break
				}
				size, err := a.write(ctx, w, record)
				if err != nil {
					return err
				}
				after, left, bytes = record.Position, left-1, bytes-size
			}
			if len(page.Records) == 0 {
				after = page.Passed
			}
			if after == "" || len(within) < len(page.Records) {
				break
			}
		}
	}
	if _, err := a.omit(w, omitted, func(operator.Event) bool { return true }); err != nil {
		return err
	}
	return writeJSON(w, lastLine{lastPlace{Sequence: strconv.FormatInt(a.row.Sequence, 10), Origin: a.row.Origin, Position: a.row.Position}})
}

// write writes one record as it would be delivered now, out of its turn. It returns the size of its payload.
func (a *Answer) write(ctx context.Context, w io.Writer, r processor.Record) (int, error) {
	err := r.Fault
	if err == nil && a.prepare != nil {
		within, cancel := context.WithTimeout(ctx, a.process.filled().Timeout)
		defer cancel()
		var made processor.Record
		if made, err = a.prepare(within, r); err == nil {
			r.Type, r.Headers, r.Payload = made.Type, made.Headers, made.Payload
		}
	}
	if err != nil {
		return 0, fmt.Errorf("record %s at %s cannot be shown: %w", visible.Cut(r.ID), visible.Cut(string(r.Position)), err)
	}
	history, err := a.row.Histories.At(r.Position)
	if err != nil {
		return 0, err
	}
	return len(r.Payload), sinks.WriteLine(w, processor.Delivery{
		Record: r, Process: a.process.Name, Sequence: max(1, a.row.Sequence), Epoch: max(1, a.row.Epoch), Origin: a.row.Origin, History: history, Attempt: 1, After: r.Position,
	})
}

// omit writes the events that are due, unless an earlier answer had them, and returns the others.
func (a *Answer) omit(w io.Writer, events []operator.Event, due func(operator.Event) bool) ([]operator.Event, error) {
	for len(events) > 0 && due(events[0]) {
		if e := events[0]; e.To > a.ask.From {
			if err := writeJSON(w, omittedLine{omission{e.Action, recordOf(e), e.From, e.To, e.At.UTC()}}); err != nil {
				return nil, err
			}
		}
		events = events[1:]
	}
	return events, nil
}

// omittedLine is the line about records that the process passed without a delivery. Fields may be added, never changed.
type omittedLine struct {
	Omitted omission `json:"omitted"`
}

type omission struct {
	Action string          `json:"action"`
	Record string          `json:"record_id,omitempty"`
	After  cursor.Position `json:"after"`
	UpTo   cursor.Position `json:"up_to"`
	At     time.Time       `json:"at"`
}

// lastLine ends an answer. Fields may be added, never changed.
type lastLine struct {
	End lastPlace `json:"end"`
}

// lastPlace is where an answer ends: with From there are more records. Without it, there are none up to Sequence.
type lastPlace struct {
	From     cursor.Position `json:"from,omitempty"`
	Sequence string          `json:"sequence,omitempty"`
	Origin   string          `json:"origin,omitempty"`
	Position cursor.Position `json:"position,omitempty"`
}

func writeJSON(w io.Writer, line any) error { return json.NewEncoder(w).Encode(line) }
