package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Trial is one test delivery.
type Trial struct {
	Config  Config
	Process string
	// Key and Type are those of the test, for a sink that makes its address of them.
	Key, Type string
	Output    Output
}

// Tried is what became of a test.
type Tried struct {
	Delivery processor.Delivery
	Took     time.Duration
	// Undone: the effects were rolled back.
	Undone bool
	// New: the process has not run yet, so the numbers of the test are not those of a cursor.
	New bool
}

// SendTest sends one test (processor.Test) through the sink of a process. It takes no lease, moves no cursor and notes
// nothing. It returns a *UsageError for a sink that cannot be tested without harm to the records.
func SendTest(ctx context.Context, t Trial) (Tried, error) {
	at := slices.Index(t.Config.Names(), t.Process)
	if at < 0 {
		return Tried{}, unknownProcess(t.Process, t.Config.Names())
	}
	p := t.Config.Processes[at]
	if u, ok := p.Sink.Config.(sinks.Untestable); ok && u.Untestable() != "" {
		return Tried{}, usage("the sink of %s takes no test: %s", visible.Line(t.Process), u.Untestable())
	}
	if _, is := p.Sink.Config.(recorder); is {
		return Tried{}, usage("%s is a shadow, which calls no receiver: test the process that it shadows", visible.Line(t.Process))
	}
	pool, store, err := t.Config.open(ctx)
	if err != nil {
		return Tried{}, err
	}
	defer pool.Close()
	row, err := store.Look(ctx, t.Process)
	tried := Tried{New: errors.Is(err, cursor.ErrUnknown)}
	if err != nil && !tried.New {
		return Tried{}, Reachable(err)
	}
	if tried.New {
		row = cursor.Row{Process: t.Process, Origin: processor.TestTable} // receivers need one
	}
	if tried.Delivery, err = t.delivery(row); err != nil {
		return Tried{}, err
	}
	opened, err := p.Sink.Config.Open(sinks.Environment{Stdout: t.Output.Stdout, Logger: quietly(t.Output.Logger), Checkpoint: 1})
	if err != nil {
		return Tried{}, &UsageError{fmt.Errorf("process %q: %w", t.Process, err)}
	}
	if closer, ok := opened.Sink().(io.Closer); ok {
		defer closer.Close()
	}
	timeout := opened.Timeout
	if timeout == 0 {
		timeout = p.filled().Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	tried.Undone, err = send(ctx, opened, pool, tried.Delivery)
	tried.Took = time.Since(began)
	if err != nil {
		return tried, fmt.Errorf("the receiver of %s did not take the test (dedup key %s): %w", visible.Line(t.Process), tried.Delivery.DedupKey(), err)
	}
	return tried, nil
}

// delivery is the test. Its payload says so, too, since not every receiver looks at headers.
func (t Trial) delivery(row cursor.Row) (processor.Delivery, error) {
	payload, err := json.Marshal(map[string]any{processor.TestTable: true, "process": t.Process, "at": time.Now().UTC().Format(time.RFC3339Nano)})
	d := processor.Test(row, payload)
	d.Key, d.Type, d.Worker = t.Key, t.Type, Actor()
	return d, err
}

// send hands a test to a sink. What one in the database of the cursor does is rolled back.
func send(ctx context.Context, to sinks.Opened, pool *pgxpool.Pool, d processor.Delivery) (is bool, err error) {
	switch {
	case to.Each != nil:
		return false, to.Each.Deliver(ctx, d)
	case to.Pipeline != nil:
		_, err := to.Pipeline.DeliverBatch(ctx, []processor.Delivery{d})
		return false, err
	}
	err = undone(ctx, pool, func(tx pgx.Tx) error {
		if err := to.InTx.DeliverTx(ctx, tx, d); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
		return err
	})
	return true, err
}

// undone runs f in a transaction that is always rolled back.
func undone(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return Reachable(err)
	}
	err = f(tx)
	if undo := tx.Rollback(context.WithoutCancel(ctx)); err == nil && undo != nil && !errors.Is(undo, pgx.ErrTxClosed) {
		err = undo
	}
	return err
}
