package pgtest

import (
	"context"
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// hostileSQL fills the schema public with a trap for each operator, function, aggregate, relation and frequent type of
// pg_catalog. The traps do what the originals do, so one run finds them all.
//
//go:embed hostile.sql
var hostileSQL string

// Hostile lays a trap in the schema public for every name of PostgreSQL's own, and makes every session of the test's
// database look there first. A statement that uses such a name without pg_catalog steps into the trap. The returned
// function names the traps that were stepped into since its last call.
//
// Sessions report when they end. So the returned function ends idle sessions, and waits until only those of this
// package's pools are left.
func Hostile(t testing.TB) (sprung func() []string) {
	t.Helper()
	pool := Pool(t, URL(t), PoolConfig{SearchPath: "pg_catalog", MaxConns: 1})
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if _, err := pool.Exec(ctx, hostileSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("lay traps: %v", err)
	}
	return func() []string {
		t.Helper()
		return stepped(t, pool)
	}
}

// steppedSQL deletes the traps that it reads, so that the next call begins anew.
const steppedSQL = `/* pgtest.stepped */
SELECT pg_get_function_identity_arguments(funcid) AS arguments, funcname::text, pg_stat_reset_single_function_counters(funcid)::text
FROM pg_stat_user_functions
WHERE schemaname = 'public' AND calls > 0 AND (SELECT prorettype FROM pg_proc p WHERE p.oid = funcid) <> 'trigger'::regtype -- ours
ORDER BY 2, 1`

// sessionsSQL counts the sessions of the program under test, and ends those that a pooler keeps.
const sessionsSQL = `/* pgtest.sessions */
SELECT count(*), count(*) FILTER (WHERE state = 'idle' AND pg_terminate_backend(pid))
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> $1 AND pid <> pg_backend_pid()`

func stepped(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	own := t.Name()[:min(63, len(t.Name()))] // PostgreSQL keeps no more of it
	for left := 1; left > 0; time.Sleep(10 * time.Millisecond) {
		if err := pool.QueryRow(ctx, sessionsSQL, own).Scan(&left, nil); err != nil {
			t.Fatalf("wait for the sessions to end: %v", err)
		}
	}
	rows, _ := pool.Query(ctx, steppedSQL)
	var all []string
	var arguments, name, void string
	_, err := pgx.ForEachRow(rows, []any{&arguments, &name, &void}, func() error {
		all = append(all, strings.TrimPrefix(name, "trap ")+" ("+arguments+")")
		return nil
	})
	if err != nil {
		t.Fatalf("ask which traps were stepped into: %v", err)
	}
	return all
}
