package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

const terminateSQL = `/* torture.terminate */
SELECT count(pg_terminate_backend(pid))
FROM pg_stat_activity
WHERE application_name = ANY ($1)`

// terminateBackend ends the session that holds the lease of a process, as soon as one does.
func terminateBackend(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	names := []string{cursor.ApplicationLease + fault.Process, cursor.ApplicationTx + fault.Process}
	ctx, cancel := context.WithTimeout(ctx, fault.For+connectTimeout)
	defer cancel()
	err := f.database.do(ctx, func(conn *pgx.Conn) error {
		begin()
		deadline := time.Now().Add(fault.For)
		for n := 0; n == 0; pause(ctx, 2*time.Millisecond) {
			if err := conn.QueryRow(ctx, terminateSQL, names).Scan(&n); err != nil {
				return err
			}
			if time.Now().After(deadline) && n == 0 {
				return errMissed
			}
		}
		return nil
	})
	return missedIf(err)
}

// missedIf: whatever kept the nemesis from its work is another fault's doing.
func missedIf(err error) error {
	if err == nil || errors.Is(err, errMissed) {
		return err
	}
	return missed(err)
}

const stealSQL = `/* torture.steal */
SELECT process_name FROM dispatch.cursor WHERE process_name = $1 FOR UPDATE`

// stealLock is somebody who looks at the cursor's row in a transaction, and then goes for coffee.
func stealLock(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	return hold(ctx, f, fault, begin, stealSQL, fault.Process)
}

// lockSinkTable keeps a sql sink from writing.
func lockSinkTable(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	table := pgx.Identifier{"app", "applied_" + fault.Process}.Sanitize()
	return hold(ctx, f, fault, begin, "/* torture.lock */ LOCK TABLE "+table+" IN EXCLUSIVE MODE")
}

// hold keeps what a statement locks for as long as the fault lasts.
func hold(ctx context.Context, f *field, fault plan.Fault, begin func(), sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, fault.For+2*connectTimeout)
	defer cancel()
	var given history.Hold
	err := f.database.do(ctx, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'"); err != nil {
				return err
			}
			begin()
			if _, err := tx.Exec(ctx, sql, args...); err != nil {
				return err
			}
			took := f.clock.Now()
			pause(ctx, fault.For)
			given = history.Hold{From: took, To: f.clock.Now(), Kind: history.HoldsRow, Process: fault.Process}
			return nil
		})
	})
	if err == nil && fault.Kind == history.StealLock {
		f.holds.Note(given)
	}
	return missedIf(err)
}

// crash ends the server as a power cut would, and starts it again.
func crash(ctx context.Context, f *field, _ plan.Fault, begin func()) error {
	server := f.database.primary()
	begin()
	if err := server.StopImmediate(ctx); err != nil {
		return err
	}
	return server.Restart(ctx)
}

// promote gives the primary a synchronous standby, lets both work for a while, crashes the primary and promotes the
// standby. Nothing that was acknowledged may be lost by it.
func promote(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	begin()
	primary := f.database.primary()
	standby, err := primary.Standby(ctx)
	if err != nil {
		return err
	}
	err = f.failOver(ctx, primary, standby, fault.For)
	if err != nil {
		return errors.Join(err, standby.Stop(context.WithoutCancel(ctx)))
	}
	return primary.Stop(ctx)
}

func (f *field) failOver(ctx context.Context, primary, standby *pglocal.Server, after time.Duration) error {
	if err := f.database.insist(ctx, synchronise); err != nil {
		return fmt.Errorf("wait for the standby: %w", err)
	}
	pause(ctx, after)
	if err := f.database.insist(ctx, caughtUp); err != nil {
		return fmt.Errorf("wait for the standby: %w", err)
	}
	if err := primary.StopImmediate(ctx); err != nil {
		return err
	}
	f.database.replace(standby)
	if err := f.database.do(ctx, promoteStandby); err != nil {
		return err
	}
	for _, l := range f.links {
		l.Retarget(f.database.addr())
		l.Cut()
	}
	for _, p := range targeted() {
		f.receivers[p.Name].Retarget(f.database.addr())
		f.receivers[p.Name].Cut()
	}
	return nil
}

// synchronise has each COMMIT from now on wait for the standby.
func synchronise(conn *pgx.Conn) error {
	ctx := context.Background()
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return caughtUp(conn)
}

const caughtUpSQL = `/* torture.caught_up */
SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= $1::pg_lsn`

// caughtUp waits until the standby has all that the primary has written by now.
func caughtUp(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var now string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&now); err != nil {
		return err
	}
	for n := 0; n == 0; pause(ctx, 10*time.Millisecond) {
		if err := conn.QueryRow(ctx, caughtUpSQL, now).Scan(&n); err != nil {
			return err
		}
	}
	return nil
}

func promoteStandby(conn *pgx.Conn) error {
	var promoted bool
	if err := conn.QueryRow(context.Background(), "SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote(true, 60) ELSE true END").Scan(&promoted); err != nil {
		return err
	}
	if !promoted {
		return errors.New("the standby was not promoted within a minute")
	}
	return nil
}
