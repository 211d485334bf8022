// Package cursortest sets up what the tests of packages cursor and operator share.
package cursortest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

const Schema = "dispatch"

// Patience bounds the wait for an event that must come. It is shorter than two
// minutes, after which a lease of ten is pinged.
const Patience = 30 * time.Second

// Database makes the cursor tables; its cleanup audits what the test did.
func Database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: Schema})
	require.NoError(t, err)
	audit(t, pool)
	return pool
}

// audit records every change of a cursor, and fails the test if one ever went
// back: position, sequence and epoch only grow, but for the position of a seek,
// which takes a new epoch and other numbers, and that of a cursor without a place.
func audit(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	pgtest.Exec(t, pool, `
		CREATE TABLE dispatch.audit (
			n bigint GENERATED ALWAYS AS IDENTITY, process text, backward boolean, step text);
		CREATE FUNCTION dispatch.audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
		BEGIN
			INSERT INTO dispatch.audit (process, backward, step) VALUES (
				new.process_name,
				new.position < old.position AND old.position <> 'unplaced' AND (new.epoch = old.epoch OR new.sequence = old.sequence)
					OR new.sequence < old.sequence OR new.epoch < old.epoch,
				old.position || ' -> ' || new.position || ', epoch ' || old.epoch || ' -> ' || new.epoch);
			RETURN NULL;
		END $$;
		CREATE TRIGGER audit AFTER UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.audit()`)
	t.Cleanup(func() {
		rows, err := pool.Query(context.Background(), `SELECT step FROM dispatch.audit WHERE backward ORDER BY n`)
		if err != nil {
			return // the test took the tables away
		}
		steps, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Empty(t, steps, "a cursor went back")
	})
}

func Store(t testing.TB, pool *pgxpool.Pool, worker string) *cursor.Store {
	t.Helper()
	s, err := cursor.NewStore(pool, cursor.Config{Schema: Schema, Worker: worker})
	require.NoError(t, err)
	return s
}

// Created is a store whose process "sms" exists.
func Created(t testing.TB, pool *pgxpool.Pool, worker string) *cursor.Store {
	t.Helper()
	s := Store(t, pool, worker)
	_, err := s.Create(t.Context(), "sms", "")
	require.NoError(t, err)
	return s
}

func Acquire(t testing.TB, s *cursor.Store) *cursor.Lease {
	t.Helper()
	lease, err := s.Acquire(t.Context(), "sms")
	require.NoError(t, err)
	t.Cleanup(lease.Release)
	return lease
}

// Over waits for the end of a lease and returns its cause.
func Over(t testing.TB, lease *cursor.Lease) error {
	t.Helper()
	select {
	case <-lease.Context().Done():
		return Cause(lease)
	case <-time.After(Patience):
		t.Fatal("the lease did not end")
		return nil
	}
}

func Cause(lease *cursor.Lease) error { return context.Cause(lease.Context()) }

// Stranger is a pool of a role without any grant.
func Stranger(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	role := pgtest.Role(t, pool, "stranger_", "")
	pgtest.Exec(t, pool, `GRANT USAGE ON SCHEMA dispatch TO `+role)
	return pgtest.Pool(t, pgtest.With(t, pool.Config().ConnString(), "role", role), pgtest.PoolConfig{})
}

// WaitForLock returns when some session of the database waits for a lock.
func WaitForLock(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (
			SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		return err == nil && waiting
	}, Patience, time.Millisecond)
}

// Letter is a dead letter with every field that PutAside takes, as awkward as a
// record may be.
func Letter() cursor.DeadLetter {
	now := time.Now()
	return cursor.DeadLetter{
		Position: "p2", Table: "app.bookings", RecordID: "9007199254740993", Key: "k'", Type: "t",
		CreatedAt: time.UnixMicro(1_700_000_000_123_456).UTC(),
		Headers:   map[string]string{"a": "\x00\"é"},
		Payload:   []byte("{\"a\": \"\\u0000\"}\x00\xff"),
		Failure:   cursor.Failure{Attempts: 3, First: now.Add(-time.Minute), Last: now, Error: "422\x00", Class: cursor.ClassPermanent},
	}
}

// Standing is a store whose process has delivered three records, in an epoch of its own.
func Standing(t *testing.T) (*cursor.Store, *cursor.Lease) {
	t.Helper()
	s := Created(t, Database(t), "a")
	lease := Acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p3", 3))
	lease.Release()
	return s, lease
}

// Back puts the row into an earlier state, as a backup does: no trigger sees it.
func Back(t *testing.T, s *cursor.Store, set string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica; UPDATE dispatch.cursor SET `+set)
		return err
	}))
}

// requireLeap: the sequence has moved past all that may have been used, and goes on counting.
func RequireLeap(t *testing.T, from, to int64) {
	t.Helper()
	require.Greater(t, to, from)
	require.Zero(t, (to-from)%cursor.HistoryGap)
}

// Behind is a halt over rows behind "p1".
func Behind(server string, at cursor.Position) cursor.ClockHalt {
	return cursor.ClockHalt{Server: server, At: at, From: "p1", Reason: "the clock is behind"}
}

// AcquireLooked acquires the lease of a process in a restored database, in which nothing late was found.
func AcquireLooked(t *testing.T, s *cursor.Store) *cursor.Lease {
	t.Helper()
	_, err := s.Acquire(t.Context(), "sms")
	var promoted *cursor.PromotedError
	require.ErrorAs(t, err, &promoted)
	require.True(t, promoted.Restored())
	require.NotEmpty(t, promoted.Horizon)
	require.NoError(t, s.Promote(t.Context(), "sms", "", cursor.Seen{}, ""))
	require.Equal(t, "settled", LastEvent(t, s.Pool()))
	return Acquire(t, s)
}

func Poison(at cursor.Position) cursor.Failure {
	return cursor.Failure{Position: at, RecordID: string(at), Attempts: 1, First: time.Now(), Last: time.Now(), Error: "no", Class: cursor.ClassPermanent}
}

// Granted is the store of a worker whose role may do so much and nothing else.
func Granted(t *testing.T, pool *pgxpool.Pool, worker string, duties ...operator.Duty) *cursor.Store {
	t.Helper()
	role := pgtest.Role(t, pool, "Od-", "LOGIN PASSWORD 'secret'") // spelled so that it needs its quotes
	pgtest.Exec(t, pool, operator.New(Store(t, pool, "a")).Grants(role, duties...))
	return Store(t, pgtest.Pool(t, pgtest.As(t, pgtest.URL(t), role, "secret"), pgtest.PoolConfig{}), worker)
}

// Events counts those of an action; -1 if that is not known.
func Events(pool *pgxpool.Pool, action string) int {
	var n int
	if pool.QueryRow(context.Background(), "SELECT count(*) FROM dispatch.cursor_event WHERE action = $1", action).Scan(&n) != nil {
		return -1
	}
	return n
}

// Alice is a decision that lacks nothing.
var Alice = cursor.Decision{Actor: "alice", Reason: "deploy", Timeout: Patience}

func Look(t testing.TB, s *cursor.Store) cursor.Row {
	t.Helper()
	row, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	return row
}

func History(t testing.TB, s *cursor.Store) []operator.Event {
	t.Helper()
	events, err := operator.New(s).History(t.Context(), "sms", 100)
	require.NoError(t, err)
	return events
}

func ActionsOf(events []operator.Event) (actions []string) {
	for _, e := range events {
		actions = append(actions, e.Action)
	}
	return actions
}

// LastEvent is the action of the last row of the audit.
func LastEvent(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return pgtest.Value[string](t, pool, `SELECT action FROM dispatch.cursor_event ORDER BY id DESC LIMIT 1`)
}
