package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// objective: so many percent of the events have their points within this time.
type objective struct {
	percent int
	within  time.Duration
}

// watchdog alerts when an event has waited longer than the objective allows. It asks the database alone, so it also
// alerts when no worker runs.
type watchdog struct {
	store  *cursor.Store
	source *table.Source
	within time.Duration
	out    io.Writer
	alerts atomic.Bool // since the last look
}

func newWatchdog(pool *pgxpool.Pool, store *cursor.Store, within time.Duration, out io.Writer) (*watchdog, error) {
	source, err := newSource(pool)
	if err != nil {
		return nil, err
	}
	return &watchdog{store: store, source: source, within: within, out: out}, nil
}

// run looks ten times a second.
func (w *watchdog) run(ctx context.Context) error {
	for pause(ctx, 100*time.Millisecond) == nil {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// look compares the age of the oldest event after the cursor with the objective.
func (w *watchdog) look(ctx context.Context) error {
	row, err := w.store.Look(ctx, process)
	if err != nil && !errors.Is(err, cursor.ErrUnknown) { // before the dispatcher has begun, all events wait
		return err
	}
	lag, err := w.source.Lag(ctx, row.Position)
	if err != nil {
		return err
	}
	late := lag.Age > w.within
	switch before := w.alerts.Swap(late); {
	case late && !before:
		fmt.Fprintf(w.out, "alert: an order has waited longer than %v\n", w.within)
	case before && !late:
		fmt.Fprintln(w.out, "the alert is over")
	}
	return nil
}
