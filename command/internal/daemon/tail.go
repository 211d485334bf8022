package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// TailConfig chooses what Tail shows.
type TailConfig struct {
	Config  Config
	Process string
	// Last is how many records that the cursor has passed come first, from 0 to MaxTailed.
	Last int
	// Once ends after those.
	Once bool
	// Payload has the payload of each record read.
	Payload bool
}

// MaxTailed bounds TailConfig.Last.
const MaxTailed = 1000

// NeverRan is Tailed.What of a process without a cursor.
const NeverRan = "new"

const (
	tailInterval = 250 * time.Millisecond // between two looks
	tailRetry    = time.Second            // after a look that failed
	tailPage     = 500                    // records of one read
	tailEvents   = 200                    // events of one look
)

// Tailed is one thing that happened to a process: a record that its cursor passed, an attempt that failed, an event of
// the audit, or a database that is away.
type Tailed struct {
	// At is when it happened. For a record it is when it was seen, or zero if the cursor may have passed it long before.
	At time.Time
	// What is "delivered", "passed" (without a delivery, by the Event), "failed", "away", "back", "new" (the Process has not
	// run yet), or the action of an event.
	What    string
	Process string // set with "new"
	// Record is set for a record, with its payload only if that was asked for.
	Record *processor.Record
	// Amendment is what an operator gave to the Record, which was sent instead of its payload; nil without that, without
	// TailConfig.Payload, and with "passed".
	Amendment *cursor.Amendment
	// Failure is set with "failed".
	Failure *cursor.Failure
	// Event is the event, or the one by which a record was passed.
	Event *operator.Event
	// Problem is why the database is "away".
	Problem string
}

// Tail calls show for each thing that happens to a process, in order, until ctx ends or show returns an error. It changes
// nothing. It sees what the cursor's row, the audit and the source's table show: several records at once, if the worker
// is fast, and no record whose row is deleted at once. A database that goes away later than the first look is waited for.
func Tail(ctx context.Context, c TailConfig, show func(Tailed) error) error {
	at := slices.Index(c.Config.Names(), c.Process)
	if at < 0 {
		return unknownProcess(c.Process, c.Config.Names())
	}
	pool, store, err := c.Config.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	t := &tail{TailConfig: c, store: store, op: operator.New(store), show: show}
	if err := t.open(c.Config.Processes[at], pool); err != nil {
		return &UsageError{err}
	}
	if err := t.begin(ctx); err != nil || c.Once {
		return interrupted(ctx, Reachable(err))
	}
	return interrupted(ctx, t.follow(ctx))
}

// interrupted is nil if the end was asked for.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type tail struct {
	TailConfig
	store  *cursor.Store
	op     *operator.Operator
	keys   *table.Source
	source *table.Source // with the content of records; nil without Payload
	show   func(Tailed) error

	begun  bool
	prompt bool            // the last look was a moment ago, so what is seen now has just happened
	at     cursor.Position // what was shown last
	event  int64           // the last event
	failed cursor.Failure  // the last one shown
}

// errShown is the error of show, which ends the tail.
type errShown struct{ error }

func (t *tail) say(one Tailed) error {
	if one.At.IsZero() && one.Record == nil {
		one.At = time.Now()
	}
	if err := t.show(one); err != nil {
		return errShown{err}
	}
	return nil
}

func (t *tail) open(p Process, pool *pgxpool.Pool) (err error) {
	if t.keys, err = t.Config.keys(p, pool); err != nil || !t.Payload {
		return err
	}
	config := p.Source
	config.Delivered = true // the cursor has passed what is read
	t.source, err = t.Config.sourceOf(p, config, pool, nil)
	return err
}

// begin shows the last records, and notes where to go on.
func (t *tail) begin(ctx context.Context) error {
	passage, err := t.op.Since(ctx, t.Process, 0)
	if errors.Is(err, cursor.ErrUnknown) {
		return t.NeverRan() // follow waits for its first run
	}
	if err != nil {
		return err
	}
	events, err := t.op.History(ctx, t.Process, 1)
	if err != nil {
		return err
	}
	for _, e := range events {
		t.event = e.ID
	}
	row := passage.Row
	t.begun, t.at = true, row.Position
	if row.Position == cursor.Unplaced {
		t.begun = false
		return t.NeverRan()
	}
	if t.Last > 0 && row.Position > passage.Floor {
		after, _, err := t.keys.Recent(ctx, row.Position, int64(t.Last), passage.Floor)
		if err != nil {
			return err
		}
		err = t.records(ctx, after, row, func(r processor.Record) *operator.Event { return passage.Fate(r.Position).Omitted })
		if err != nil {
			return err
		}
	}
	return t.failure(row)
}

// NeverRan shows that the process has not run, if nothing else will be shown.
func (t *tail) NeverRan() error {
	if !t.Once {
		return nil
	}
	return t.say(Tailed{What: NeverRan, Process: t.Process})
}

// follow looks again and again.
func (t *tail) follow(ctx context.Context) error {
	away := false
	for {
		t.prompt = !away
		err := t.look(ctx)
		var shown errShown
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &shown):
			return shown.error
		case err != nil && !away:
			away = true
			err = t.say(Tailed{What: "away", Problem: err.Error()})
		case err == nil && away:
			away = false
			err = t.say(Tailed{What: "back"})
		case err != nil:
			err = nil
		}
		if err != nil {
			return err
		}
		delay := tailInterval
		if away {
			delay = tailRetry
		}
		pause(ctx, delay)
	}
}

// look shows what happened since the last look. What it has shown it does not show again after an error.
func (t *tail) look(ctx context.Context) error {
	row, err := t.store.Look(ctx, t.Process)
	if errors.Is(err, cursor.ErrUnknown) || err == nil && row.Position == cursor.Unplaced {
		return nil
	}
	if err != nil {
		return err
	}
	events, err := t.events(ctx)
	if err != nil {
		return err
	}
	// A seek or a skip begins an epoch. Without a change, the events have all by which the cursor came to its place.
	again, err := t.store.Look(ctx, t.Process)
	if err != nil || again.Epoch != row.Epoch {
		return err
	}
	if !t.begun {
		t.begun = true
		if i := slices.IndexFunc(events, func(e operator.Event) bool { return e.Action == "create" || e.Action == "place" }); i >= 0 {
			t.at = events[i].To
		}
	}
	for _, e := range events {
		if e.Action == "seek" {
			t.at = min(t.at, e.To, row.Position) // the records after it come again
		}
	}
	err = t.records(ctx, t.at, row, func(r processor.Record) *operator.Event { return omitting(events, r.Position) })
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := t.say(Tailed{At: e.At, What: e.Action, Event: &e}); err != nil {
			return err
		}
		if t.event = e.ID; e.Action == "halt" && row.Failure != nil && row.Failure.Position == e.To {
			t.failed = *row.Failure // the event has it
		}
	}
	return t.failure(row)
}

// events returns those since the last look, the oldest first. The workers' own notes are left out.
func (t *tail) events(ctx context.Context) ([]operator.Event, error) {
	all, err := t.op.History(ctx, t.Process, tailEvents)
	if err == nil && len(all) == tailEvents && all[len(all)-1].ID > t.event && t.event > 0 {
		all, err = t.op.History(ctx, t.Process, operator.MaxHistory)
	}
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e operator.Event) bool {
		return e.ID <= t.event || slices.Contains([]string{"watch", "configure"}, e.Action)
	})
	slices.Reverse(all)
	return all, nil
}

// omitting returns the event by which the cursor passed a position without a delivery; nil if there is none.
func omitting(events []operator.Event, at cursor.Position) *operator.Event {
	for _, e := range events {
		if slices.Contains([]string{"skip", "dead_letter", "seek"}, e.Action) && e.From < at && at <= e.To {
			return &e
		}
	}
	return nil
}

// records shows those after a position that the cursor of a row has passed.
func (t *tail) records(ctx context.Context, after cursor.Position, row cursor.Row, omitted func(processor.Record) *operator.Event) error {
	for after < row.Position {
		all, amended, err := t.page(ctx, after, row)
		if err != nil {
			return err
		}
		for _, r := range all {
			what, event := "delivered", omitted(r)
			if event != nil {
				what = "passed"
			}
			one := Tailed{What: what, Record: &r, Event: event}
			if a, found := amended[r.Position]; found && event == nil {
				one.Amendment = &a
			}
			if t.prompt {
				one.At = time.Now()
			}
			if err := t.say(one); err != nil {
				return err
			}
			after, t.at = r.Position, r.Position
		}
		if len(all) == 0 {
			break
		}
	}
	t.at = row.Position
	return nil
}

// page reads the next records and, with their payloads, what operators gave to them.
func (t *tail) page(ctx context.Context, after cursor.Position, row cursor.Row) ([]processor.Record, map[cursor.Position]cursor.Amendment, error) {
	if t.source == nil {
		span, err := t.keys.Between(ctx, after, row.Position, tailPage)
		return span.Records, nil, err
	}
	page, err := t.source.Read(ctx, after, tailPage)
	if err != nil {
		return nil, nil, err
	}
	all := slices.DeleteFunc(page.Records, func(r processor.Record) bool { return r.Position > row.Position })
	amended, err := amendments(ctx, t.op, row, all)
	return all, amended, err
}

// failure shows an attempt that failed, once.
func (t *tail) failure(row cursor.Row) error {
	f := row.Failure
	if f == nil || f.RecordID == "" || f.Position == t.failed.Position && f.Attempts == t.failed.Attempts && f.First.Equal(t.failed.First) {
		return nil
	}
	t.failed = *f
	return t.say(Tailed{At: f.Last, What: "failed", Failure: f})
}
