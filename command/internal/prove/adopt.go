package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// AdoptConfig describes a move from an old way to deliver a table.
type AdoptConfig struct {
	Table table.Config
	Old   Old
	// Wait bounds the wait for the fence, and for the old way to confirm what it has.
	Wait time.Duration
	// Watch is how long the old way is watched for signs that it still runs.
	Watch time.Duration

	looked, between func() // for tests: after the look at the rows, and between the two looks at the old way
}

// Adoption is where a process may begin that takes over.
type Adoption struct {
	Table string `json:"table"`
	Order string `json:"order"`
	Old   string `json:"old"`
	// Start is the position: every row up to it is delivered, and no other can appear before it. "" is the beginning.
	Start cursor.Position `json:"start"`
	// Row is the row at Start; nil at the beginning, and for a position that was given.
	Row *Row `json:"row,omitempty"`
	// Earlier is why Start is not after everything that the old way has delivered; "" if nothing else held it.
	Earlier string `json:"earlier,omitempty"`
	// Unproven is what has to be true so that nothing is lost, and what this database does not show; "" if Start is
	// proven.
	Unproven string `json:"unproven,omitempty"`
	// Running are signs that the old way still runs. Then there is no use in Start yet.
	Running string `json:"running,omitempty"`
	// Stop names what has to be stopped before the process begins.
	Stop string `json:"stop"`
	// Again counts the rows after Start that the old way has delivered, up to 100,000: they are sent twice. Twice are the
	// first of them. They are not known if AgainKnown is false.
	AgainKnown bool  `json:"again_known"`
	Again      int64 `json:"again"`
	Twice      []Row `json:"twice"`
	// Next counts the rows after Start that were not delivered, up to 100,000.
	Next  int64    `json:"next"`
	Notes []string `json:"notes,omitempty"`
}

// Old is a way to deliver the rows of a table that a process takes over from.
type Old interface {
	// Name describes it, Stop is what to stop.
	Name() string
	Stop() string
	// delivered returns what is known of the rows that it has delivered. It is asked after the fence.
	delivered(ctx context.Context, m *move) (known, error)
}

// known is what is known of the rows that were delivered. Exactly one of its first three fields is set.
type known struct {
	// condition is SQL that is true for a row that was delivered.
	condition string
	// everything: all rows before the fence were delivered.
	everything bool
	// after is a position up to which all rows were delivered, as a person has said; nil if none has.
	after *cursor.Position

	earlier, unproven string
	notes             []string
	mark              string // the old way's own state: another one at the next look means that it runs
	unwatched         bool   // it shows no sign of running, or may run
}

// move is one adoption.
type move struct {
	AdoptConfig
	pool *pgxpool.Pool
	*opened
	bound table.Bound
	last  cursor.Position // of the rows before the fence
}

// ErrFenceHeld means that rows may still appear anywhere, so no position is proven.
var ErrFenceHeld = errors.New("open transactions hold the fence")

// Adopt finds the position. It asks for the fence before it looks at any row: a row that appears later is then after the
// fence, and so after the position.
func Adopt(ctx context.Context, pool *pgxpool.Pool, c AdoptConfig) (Adoption, error) {
	o, err := open(ctx, pool, c.Table)
	if err != nil {
		return Adoption{}, err
	}
	m := &move{AdoptConfig: c, pool: pool, opened: o}
	if err := m.askFence(ctx); err != nil {
		return Adoption{}, err
	}
	if m.last, err = m.source.Back(ctx, m.bound.Before, 1); err != nil {
		return Adoption{}, err
	}
	k, err := c.Old.delivered(ctx, m)
	if err != nil {
		return Adoption{}, err
	}
	a := Adoption{Table: m.name, Order: m.order, Old: c.Old.Name(), Stop: c.Old.Stop(), Earlier: k.earlier, Unproven: k.unproven, Notes: k.notes, Twice: []Row{}}
	if err := m.place(ctx, k, &a); err != nil {
		return Adoption{}, err
	}
	a.Running, err = m.running(ctx, k, a)
	return a, err
}

// askFence asks until the fence is known. Transactions that the first question finds must end first.
func (m *move) askFence(ctx context.Context) (err error) {
	deadline := time.Now().Add(m.Wait)
	for {
		if m.bound, err = m.source.Fence(ctx); err != nil || m.bound.Before != "" {
			return err
		}
		if time.Now().After(deadline) {
			return m.fenceHeld(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fenceHeld names the transactions that hold the fence.
func (m *move) fenceHeld(ctx context.Context) error {
	writers, err := m.source.Writers(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, w := range writers[:min(len(writers), namedHolders)] {
		names = append(names, holderOf(w, Holder{}).session())
	}
	return fmt.Errorf("%w: rows may still appear before any position. Wait until they have ended, or end them, and run adopt again: %s",
		ErrFenceHeld, strings.Join(names, "; "))
}

// filtered is the source of the rows for which a condition is true.
func (m *move) filtered(condition string) (*table.Source, error) {
	c := m.config
	c.Table = m.name
	if c.Where != "" {
		condition = "(\n" + c.Where + "\n) AND " + condition
	}
	c.Where = condition
	return table.New(m.pool, c)
}

// place finds the position, and the rows after it.
func (m *move) place(ctx context.Context, k known, a *Adoption) error {
	switch {
	case k.after != nil:
		return m.placeAfter(ctx, *k.after, a)
	case k.everything:
		a.Start = m.last
		if err := m.describe(ctx, a); err != nil {
			return err
		}
		lag, err := m.source.Lag(ctx, a.Start)
		a.Next = lag.Records
		return err
	}
	undelivered, err := m.filtered("(" + k.condition + ") IS NOT TRUE")
	if err != nil {
		return err
	}
	next, err := undelivered.Look(ctx, "", 1)
	if err != nil {
		return tooLong(err)
	}
	if m.looked != nil {
		m.looked()
	}
	limit := m.bound.Before
	if len(next.Records) > 0 {
		limit = min(limit, next.Records[0].Position)
	}
	if a.Start, err = m.source.Back(ctx, limit, 1); err != nil {
		return err
	}
	if limit == m.bound.Before && m.bound.Holder != "" {
		a.Earlier = joined(a.Earlier, "an open transaction may still commit a row after it")
	}
	if err := m.describe(ctx, a); err != nil {
		return err
	}
	lag, err := undelivered.Lag(ctx, a.Start)
	if err != nil {
		return tooLong(err)
	}
	a.Next = lag.Records
	return m.twice(ctx, k, a)
}

// placeAfter checks a position that a person gives against the fence.
func (m *move) placeAfter(ctx context.Context, after cursor.Position, a *Adoption) error {
	if after != "" {
		if _, err := m.source.Look(ctx, after, 1); err != nil {
			return err
		}
	}
	a.Start = after
	if after >= m.bound.Before {
		a.Start = m.last
		a.Earlier = "rows may still appear before the position that was given: it is at or after the fence"
		if err := m.describe(ctx, a); err != nil {
			return err
		}
		span, err := m.source.Between(ctx, a.Start, after, maxNamed)
		if err != nil {
			return err
		}
		a.again(span.Total, span.Records)
	}
	lag, err := m.source.Lag(ctx, max(after, a.Start))
	a.Next = lag.Records
	return err
}

// describe looks up the row at the position.
func (m *move) describe(ctx context.Context, a *Adoption) error {
	if a.Start == "" {
		return nil
	}
	before, err := m.source.Back(ctx, a.Start, 1)
	if err != nil {
		return err
	}
	look, err := m.source.Look(ctx, before, 1)
	if err != nil || len(look.Records) == 0 {
		return err
	}
	row := rowOf(look.Records[0])
	a.Row = &row
	return nil
}

// twice finds the rows after the position that were delivered.
func (m *move) twice(ctx context.Context, k known, a *Adoption) error {
	delivered, err := m.filtered("(" + k.condition + ")")
	if err != nil {
		return err
	}
	lag, err := delivered.Lag(ctx, a.Start)
	if err != nil {
		return tooLong(err)
	}
	look, err := delivered.Look(ctx, a.Start, maxNamed)
	if err != nil {
		return tooLong(err)
	}
	a.again(lag.Records, look.Records)
	return nil
}

func (a *Adoption) again(total int64, records []processor.Record) {
	a.AgainKnown, a.Again = true, total
	for _, r := range records {
		a.Twice = append(a.Twice, rowOf(r))
	}
}

// watched is how many rows that were not delivered are watched.
const watched = 1000

// running looks a second time at the old way. A row that it delivers in between shows that it runs.
func (m *move) running(ctx context.Context, k known, a Adoption) (string, error) {
	if k.unwatched {
		return "", nil
	}
	var before []processor.Record
	var delivered *table.Source
	if k.condition != "" && k.mark == "" {
		undelivered, err := m.filtered("(" + k.condition + ") IS NOT TRUE")
		if err != nil {
			return "", err
		}
		look, err := undelivered.Look(ctx, a.Start, watched)
		if err != nil {
			return "", tooLong(err)
		}
		if before = look.Records; len(before) == 0 {
			return "", nil
		}
		if delivered, err = m.filtered("(" + k.condition + ")"); err != nil {
			return "", err
		}
	}
	if err := m.pause(ctx); err != nil {
		return "", err
	}
	if delivered == nil {
		again, err := m.Old.delivered(ctx, m)
		if err == nil && again.mark != k.mark {
			return "its state has changed while it was watched", nil
		}
		return "", err
	}
	look, err := delivered.Look(ctx, a.Start, watched+int(min(a.Again, watched)))
	if err != nil {
		return "", tooLong(err)
	}
	marked := 0
	for _, r := range look.Records {
		if slices.ContainsFunc(before, func(b processor.Record) bool { return b.Position == r.Position }) {
			marked++
		}
	}
	if marked == 0 {
		return "", nil
	}
	return fmt.Sprintf("it has delivered %s while it was watched", quantity.Of(marked, "row")), nil
}

func (m *move) pause(ctx context.Context) error {
	if m.between != nil {
		m.between()
		return nil
	}
	select {
	case <-time.After(m.Watch):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tooLong adds the next step to the error of a search that took the server too long.
func tooLong(err error) error {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "57014" {
		return fmt.Errorf("%w: the server looked for the first row that was not delivered, in the order of the table. Delete rows that are delivered, "+
			"or name a position with --after", err)
	}
	return err
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
