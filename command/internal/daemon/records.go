package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
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
	// From is the place to go on from, as an earlier answer ended with; its zero value is the beginning.
	From Place
	// Limit bounds the number of records, from 1 on.
	Limit int
	// Pruned accepts that retention has removed some of them.
	Pruned bool
}

// Place is where an answer ended.
type Place struct {
	// Position is the one of the last record in its turn.
	Position cursor.Position
	// Replay is the event of the last dead letter that was replayed; 0 before the first.
	Replay int64
}

// ParsePlace reads the text that Place.String returns.
func ParsePlace(text string) (Place, error) {
	replay, position, found := strings.Cut(text, "+")
	n, err := strconv.ParseUint(replay, 10, 63)
	if !found || err != nil { // ids are text, and may have a plus
		n, position = 0, text
	}
	p := Place{cursor.Position(position), int64(n)}
	if position != "" && !table.IsPosition(p.Position) || p.String() != text {
		return p, errors.New("it is not a place with which an answer ended")
	}
	return p, nil
}

// String is what a receiver sends back.
func (p Place) String() string {
	if p.Replay == 0 {
		return string(p.Position)
	}
	return strconv.FormatInt(p.Replay, 10) + "+" + string(p.Position)
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
	ask    Ask
	row    cursor.Row
	passed operator.Passed
	first  cursor.Position // as kept takes it
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
	if ask.From.Position != "" && !table.SameOrder(ask.From.Position, a.row.Position) {
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
	a.passed = passage.After(at)
	if all := a.passed.Delivered; len(all) > 0 && all[0].After < at { // after a seek back
		at, first = all[0].After, ""
	}
	a.first = first
	if err := a.kept(ctx, at); err != nil {
		return nil, err
	}
	for _, s := range a.passed.Delivered {
		if s.After != "" && !table.SameOrder(s.After, s.UpTo) {
			return nil, fmt.Errorf("%w: the order of the source was changed since then: `seek` to where delivery shall go on", ErrNumber)
		}
	}
	return a, nil
}

// kept returns an error if retention has removed records after a place. Those before the first one that counts may be
// gone, if that one is known.
func (a *Answer) kept(ctx context.Context, at cursor.Position) error {
	if a.ask.Pruned || at >= a.row.Position {
		return nil
	}
	read, err := reading(ctx, a.source)
	if err != nil {
		return err
	}
	all, err := a.op.PrunedAround(ctx, read)
	if err != nil {
		return err
	}
	for _, p := range all {
		switch {
		case p.Apart:
			return fmt.Errorf("%w, or may be: %s, a place that cannot be compared with those of this process. To get what is there, ask again with --pruned, or pruned=true", ErrRemoved, p)
		case at < p.Through && a.first <= p.Through:
			return fmt.Errorf("%w: %s. To get the others, ask again with --pruned, or pruned=true", ErrRemoved, p)
		}
	}
	return nil
}
