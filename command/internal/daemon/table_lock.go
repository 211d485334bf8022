package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// whoBlocks is the next step if it is not known whose lock a look waited for. A role without the right sees no
// wait_event. It would mistake a COMMIT that waits for a standby for any other session.
const whoBlocks = "find the session that holds the lock, as a superuser or with pg_read_all_stats, since other roles cannot see wait_event: " +
	"SELECT pid, application_name, xact_start, wait_event, query FROM pg_stat_activity WHERE pid IN (SELECT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity). " +
	"End that session, unless its wait_event is SyncRep: then a failover would lose what its COMMIT has committed"

// waitedForLock reports whether err ended a statement that waited for a lock.
func waitedForLock(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03"
}

// excluder finds the transaction that keeps readers from the table of a source. It returns nil if there is none, or
// if it does not find it.
func excluder(ctx context.Context, store *cursor.Store, source *table.Source) *cursor.Locker {
	oid, err := source.OID(ctx)
	if err != nil || oid == 0 {
		return nil // the caller reports the error of its own question
	}
	return first(store.Excluders(ctx, oid))
}

func first(all []cursor.Locker, err error) *cursor.Locker {
	if err != nil || len(all) == 0 {
		return nil
	}
	return &all[0]
}

// tableLocked describes whose lock a look at the table waited for, and what to do; "" if it waited for none.
func (r *StatusReader) tableLocked(ctx context.Context, source *table.Source, err error) string {
	if !waitedForLock(err) {
		return ""
	}
	if l := excluder(ctx, r.store, source); l != nil {
		return "; " + visible.Line(l.String()) + " " + l.Has("the table") + "; next: " + l.Advice()
	}
	return "; a transaction had locked the table; next: " + whoBlocks
}

// locked reports that a check waited for a lock, and names the holder.
func (d *doctor) locked(ctx context.Context, process string, err error) {
	const problem = "a check did not end in time, and workers will wait as well: %v"
	var excluded *cursor.ExcludedError
	if errors.As(err, &excluded) {
		d.find(process, Refuse, excluded.Holder.Fix(), problem, err)
		return
	}
	var l *cursor.Locker
	if i := slices.IndexFunc(d.config.Processes, func(p Process) bool { return p.Name == process }); i >= 0 {
		if source, err := d.config.source(d.config.Processes[i], d.pool, nil); err == nil { // another check finds that error
			l = excluder(ctx, d.store, source)
		}
	}
	if l == nil { // a check of a process also reads its row
		l = first(d.store.Excluders(ctx, 0))
	}
	if l == nil {
		fix := whoBlocks
		if !waitedForLock(err) {
			fix = "check whether a pooler has all its connections in use, or the server hangs. If neither: " + whoBlocks
		}
		d.find(process, Refuse, fix, problem, err)
		return
	}
	d.find(process, Refuse, l.Fix(), problem+"; %s %s", err, visible.Line(l.String()), l.Has("a table"))
}
