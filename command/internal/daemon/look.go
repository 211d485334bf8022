package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// lookInterval is the pause between two looks, however long they take. A look reads a row for each process. If
	// slow looks came less often, an operator could not see why the database is slow. The pause is shorter while the
	// database is away, and until every process has its row.
	lookInterval = 5 * time.Second
	awayInterval = time.Second
	// lookTimeout bounds each question. When it ends, the server is asked to cancel.
	lookTimeout = 5 * time.Second
	// readyTime is how long a look that found the database usable counts.
	readyTime = 30 * time.Second
)

// looker asks the database again and again about the state of the processes. Nothing waits for it: a reader gets the
// result of the last look. The counter, not the looker, counts the records after the cursors, since that can take
// long.
type looker struct {
	config  Config
	pool    *pgxpool.Pool
	store   *cursor.Store
	watched map[string]watched // by process
	metrics *metrics.Metrics
	log     *slog.Logger
	every   time.Duration

	found  atomic.Pointer[found]
	fell   atomic.Pointer[found] // the last one that failed
	absent bool                  // a process had no row yet at the last look
	logged problems              // of a source by its process, of the database by ""

	inspected inspected
}

// watched is a process and its table.
type watched struct {
	Process
	read  *table.Source // the one from which the worker delivers
	count *table.Source // the counter's own, so that a read never waits for a count
}

// found is the result of a look: whether it could use the database.
type found struct {
	at  time.Time
	err error
}

var errNotLooked = errors.New("the database was not asked yet")

// fault returns why the process cannot work with its database; nil if it can.
func (l *looker) fault() error {
	switch f := l.found.Load(); {
	case f == nil:
		return errNotLooked
	case f.err != nil:
		return f.err
	case time.Since(f.at) > readyTime:
		return fmt.Errorf("the database has not answered for %v", time.Since(f.at).Round(time.Second))
	default:
		return nil
	}
}

// failed returns when a look last failed; zero if none did.
func (l *looker) failed() time.Time {
	if f := l.fell.Load(); f != nil {
		return f.at
	}
	return time.Time{}
}

// run looks until ctx ends.
func (l *looker) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.look(ctx)
		l.inspect(ctx)
		pause(ctx, l.interval())
	}
}

func (l *looker) interval() time.Duration {
	if l.fault() != nil || l.absent || l.inspected.fault(func(string) bool { return false }) != nil {
		return min(awayInterval, l.every)
	}
	return l.every
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// These are the answers of /readyz. A client may not be entitled to more, so only the log has the detail.
var (
	errAway     = errors.New("the database cannot be asked: see the log")
	errUnusable = errors.New("the cursor tables cannot be written: see the log, or run doctor")
)

// look makes one look.
func (l *looker) look(ctx context.Context) {
	asked := time.Now()
	var now time.Time
	var rows []cursor.Row
	err := answer.Within(ctx, lookTimeout, func(ctx context.Context) (err error) {
		now, rows, err = l.usable(ctx)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	l.note(err)
	switch {
	case errors.Is(err, errUnusable):
		err = errUnusable
	case err != nil:
		err = errAway
	}
	look := &found{time.Now(), err}
	l.found.Store(look)
	if err != nil {
		l.fell.Store(look)
	}
	l.absent = len(rows) < len(l.watched)
	for _, row := range rows {
		if w, ok := l.watched[row.Process]; ok {
			l.metrics.Look(metrics.Look{Asked: asked, Now: now, Row: row, Leads: l.leads(row), Held: w.read.Held()})
		}
	}
}

// leads reports whether this worker is the one that a row names.
func (l *looker) leads(row cursor.Row) metrics.Leads {
	if row.Holder == l.store.Worker() {
		return metrics.Leader
	}
	return metrics.Other
}

const usableSQL = `/* daemon.usable */
SELECT
	clock_timestamp(),
	NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean,
	has_any_column_privilege($1, 'UPDATE') AND has_any_column_privilege($2, 'INSERT')`

// usable reads the rows, and finds out whether it could write them.
func (l *looker) usable(ctx context.Context) (now time.Time, rows []cursor.Row, err error) {
	if rows, err = l.store.List(ctx); err != nil {
		return now, nil, err
	}
	var primary, granted bool
	err = ask(ctx, l.pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, usableSQL, binary, l.config.name("cursor"), l.config.name("cursor_event")).Scan(&now, &primary, &granted)
	})
	if err != nil {
		return now, nil, fmt.Errorf("ask whether the cursor tables can be written: %w", err)
	}
	switch {
	case !primary:
		return now, rows, fmt.Errorf("%w: the session is read-only, or its server a standby", errUnusable)
	case !granted:
		return now, rows, fmt.Errorf("%w: a grant is missing", errUnusable)
	default:
		return now, rows, nil
	}
}

// note logs a problem if it differs from the last one.
func (l *looker) note(err error) {
	switch {
	case !l.logged.changes("", err):
	case err == nil:
		l.log.Info("the database shows the state of the processes again: the metrics follow it")
	default:
		l.log.Warn("the worker cannot read the state of the processes from the database: the metrics keep their last values", "err", err)
	}
}

// problems holds the last problem that was logged, by process, so that the log names each change once.
type problems map[string]string

// changes notes a problem, and reports whether a problem, or its end, differs from the last one.
func (p problems) changes(process string, err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	before := p[process]
	p[process] = text
	return text != before
}
