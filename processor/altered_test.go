package processor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// alterations change how rows are stamped: from then on with the start of their transaction.
var alterations = map[string]string{
	"default": `ALTER TABLE dispatch.bookings ALTER created_at SET DEFAULT now()`,
	"trigger": `CREATE FUNCTION dispatch.stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.created_at := now(); RETURN NEW; END';
		CREATE TRIGGER stamp BEFORE INSERT ON dispatch.bookings FOR EACH ROW EXECUTE FUNCTION dispatch.stamp()`,
}

// TestResume_ATableThatWasAlteredIsReadAsItIs: an operator pauses a process, changes how its table is
// stamped, and resumes the process a moment later. A worker relies for a minute on what the catalog said.
func TestResume_ATableThatWasAlteredIsReadAsItIs(t *testing.T) {
	t.Parallel()
	for name, ddl := range alterations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 1)
			sink, seen := &receiver{}, &events{}
			start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
				quick(c)
				c.Observe = seen.observe
			}))
			caughtUp(t, pool)
			decide(t, pool, (*operator.Operator).Pause)
			exec(t, pool, ddl)
			decide(t, pool, (*operator.Operator).Resume)

			first := begin(t)
			exec(t, pool, `INSERT INTO dispatch.bookings (customer) VALUES ('the second one')`)
			waiting := func() int {
				n := 0
				for _, e := range seen.of(processor.EventPass) {
					if e.State == processor.StateWaiting {
						n++
					}
				}
				return n
			}
			before := waiting()
			eventually(t, "the record waits, or is delivered", func() bool { return waiting() > before+1 || sink.calls() > 1 })
			exec(t, first, `INSERT INTO dispatch.bookings (customer) VALUES ('the first one')`)
			require.NoError(t, first.Commit(t.Context()))
			eventually(t, "both are delivered", func() bool { return sink.calls() >= 3 })
			require.Equal(t, []string{"1/1", "3/1", "2/1"}, sink.attempts())
		})
	}
}

// begin is a transaction that has begun and written nothing.
func begin(t testing.TB) pgx.Tx {
	t.Helper()
	return pgtest.Begin(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1}), "SELECT")
}

// witness is a source that notes what is asked of it.
type witness struct {
	*table.Source
	mu    sync.Mutex
	notes []string
	after func(processor.Page) // each read
}

func (w *witness) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, what)
}

func (w *witness) Refresh() {
	w.note("refresh")
	w.Source.Refresh()
}

func (w *witness) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	w.note("read after " + string(after))
	page, err := w.Source.Read(ctx, after, limit)
	if err == nil {
		w.after(page)
	}
	return page, err
}

// TestResume_WhatWasReadBeforeIsReadAnew: the pause, the change and the resume fall between the look of a worker and its lease.
func TestResume_WhatWasReadBeforeIsReadAnew(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	w := &witness{Source: source(t, pool)}
	altered := false
	w.after = func(page processor.Page) {
		if altered || len(page.Records) == 0 || page.Records[0].ID != "2" {
			return
		}
		altered = true
		decide(t, pool, (*operator.Operator).Pause)
		exec(t, pool, alterations["default"])
		decide(t, pool, (*operator.Operator).Resume)
		w.note("resumed")
	}
	sink := &receiver{answer: func(_ context.Context, d processor.Delivery) error {
		w.note("deliver " + d.ID)
		return nil
	}}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) {
		c.Source = w
		quick(c)
		c.Poll = 20 * time.Millisecond
	}))
	eventually(t, "the first one is delivered", func() bool { return row(t, pool).Sequence == 1 })
	insert(t, pool, 1)
	eventually(t, "the second one is delivered", func() bool { return row(t, pool).Sequence == 2 })
	w.mu.Lock()
	defer w.mu.Unlock()
	var since []string
	for _, what := range w.notes {
		if what == "resumed" || len(since) > 0 {
			since = append(since, what)
		}
	}
	require.Contains(t, since, "deliver 2")
	require.Equal(t, []string{"resumed", "refresh", "read after " + string(sink.all()[0].Position)}, since[:3])
}
