package migrations_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

func TestUp_MakesTheTablesInTheSchemaAndNowhereElse(t *testing.T) {
	t.Parallel()
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: `Od "x"`}

	applied, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	require.NotEmpty(t, applied)
	require.Equal(t, []string{"cursor", "cursor_alarm", "cursor_amended", "cursor_event", "cursor_past", "cursor_pruned", "dead_letter", "ordered_dispatcher_migration"}, tables(t, pgtest.Database(t), config.Schema))
	require.Empty(t, tables(t, pgtest.Database(t), "public"))

	again, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	require.Empty(t, again)
}

func TestUp_TwoAtOnceTakeTurns(t *testing.T) {
	t.Parallel()
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: "od"}
	const workers = 8
	var wg sync.WaitGroup
	applied, errs := make([]int, workers), make([]error, workers)
	for i := range workers {
		wg.Go(func() {
			var done []migrations.Migration
			done, errs[i] = migrations.Up(t.Context(), config)
			applied[i] = len(done)
		})
	}
	wg.Wait()
	total := 0
	for i := range workers {
		require.NoError(t, errs[i])
		total += applied[i]
	}
	require.Equal(t, len(status(t, config)), total, "each migration is applied by exactly one")
}

func TestUp_WaitsForAnother(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	config := migrations.Config{ConnString: pgtest.URL(t)}
	other, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer other.Release()
	pgtest.Exec(t, other, "SELECT pg_advisory_lock(hashtextextended('ordered-dispatcher migrate public', 0))")

	done := make(chan error, 1)
	go func() {
		_, err := migrations.Up(t.Context(), config)
		done <- err
	}()
	require.Eventually(t, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND NOT granted "+
			"AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))").Scan(&waiting)
		return err == nil && waiting
	}, 10*time.Second, 5*time.Millisecond)
	require.Empty(t, tables(t, pool, "public"))

	pgtest.Exec(t, other, "SELECT pg_advisory_unlock_all()")
	require.NoError(t, <-done)
}

func TestDown_TakesBackWhatUpMade(t *testing.T) {
	t.Parallel()
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: "od"}
	applied, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	for range applied {
		undone, err := migrations.Down(t.Context(), config)
		require.NoError(t, err)
		require.NotNil(t, undone)
	}
	require.Equal(t, []string{"ordered_dispatcher_migration"}, tables(t, pgtest.Database(t), "od"))
	undone, err := migrations.Down(t.Context(), config)
	require.NoError(t, err)
	require.Nil(t, undone)
	_, err = migrations.Up(t.Context(), config)
	require.NoError(t, err)
}

func TestStatus_ChangesNothing(t *testing.T) {
	t.Parallel()
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: "od"}
	for _, m := range status(t, config) {
		require.Zero(t, m.AppliedAt)
	}
	require.Empty(t, tables(t, pgtest.Database(t), "od"))

	_, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	for _, m := range status(t, config) {
		require.WithinDuration(t, time.Now(), m.AppliedAt, time.Minute)
	}

	pgtest.Exec(t, pgtest.Database(t), "INSERT INTO od.ordered_dispatcher_migration (version_id, is_applied) VALUES (99999, true)")
	known := status(t, config)
	last := known[len(known)-1]
	require.EqualValues(t, 99999, last.Version)
	require.Empty(t, last.Name, "a newer program's migration is shown, without a file")
}

func TestPrint_RunsWithAnyTool(t *testing.T) {
	t.Parallel()
	var sql bytes.Buffer
	require.NoError(t, migrations.Print(&sql, "od"))
	require.NotContains(t, sql.String(), "+goose")
	require.NotContains(t, sql.String(), "DROP TABLE")

	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, sql.String(), pgx.QueryExecModeSimpleProtocol)
	require.Equal(t, []string{"cursor", "cursor_alarm", "cursor_amended", "cursor_event", "cursor_past", "cursor_pruned", "dead_letter"}, tables(t, pool, "od"))

	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: "od"})
	require.ErrorContains(t, err, "but these migrations did not make it")
}

func TestUp_RefusesAPooler(t *testing.T) {
	t.Parallel()
	for name, pooler := range map[string]pgtest.Bouncer{
		"one that drops the search_path":    {},
		"one that happens to have the same": {SearchPath: `"public"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pooler.Start(t, pgtest.URL(t))})
			require.ErrorIs(t, err, migrations.ErrPooler)
			require.Empty(t, tables(t, pgtest.Database(t), "public"))
		})
	}
}

func TestStatus_WorksThroughAPooler(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, status(t, migrations.Config{ConnString: pgtest.PgBouncer(t, pgtest.URL(t))}))
}

func TestUp_SaysTheFix(t *testing.T) {
	t.Parallel()
	address := as(t, pgtest.Role(t, pgtest.Database(t), "od_", ""))

	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: address, Schema: "od"})
	require.ErrorContains(t, err, "GRANT CREATE ON SCHEMA")

	_, err = migrations.Up(t.Context(), migrations.Config{ConnString: pgtest.URL(t), Schema: "od"})
	require.NoError(t, err)
	_, err = migrations.Status(t.Context(), migrations.Config{ConnString: address, Schema: "od"})
	require.ErrorContains(t, err, `ask as the role that migrates, or GRANT SELECT`)
	require.NotContains(t, err.Error(), "CREATE")
}

func TestUp_NeverShowsAPassword(t *testing.T) {
	t.Parallel()
	for _, conn := range []string{
		"postgres://me:canary/9@localhost/x",
		"postgres://me:can ary@localhost:port/x",
		"host=localhost password='canary port=x",
		"canary",
	} {
		_, err := migrations.Up(t.Context(), migrations.Config{ConnString: conn})
		require.ErrorContains(t, err, "percent-encode")
		require.NotContains(t, err.Error(), "canary")
		require.NotContains(t, err.Error(), "ary@")
	}
}

func TestUp_RefusesALongSchema(t *testing.T) {
	t.Parallel()
	_, err := migrations.Up(t.Context(), migrations.Config{Schema: string(bytes.Repeat([]byte("x"), 64))})
	require.ErrorContains(t, err, "63 bytes")
}

func status(t *testing.T, config migrations.Config) []migrations.Migration {
	t.Helper()
	known, err := migrations.Status(t.Context(), config)
	require.NoError(t, err)
	return known
}

func tables(t *testing.T, pool *pgxpool.Pool, schema string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1 ORDER BY tablename", schema)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func TestUp_RefusesToFillAGap(t *testing.T) {
	t.Parallel()
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: "od"}
	applied, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	_, err = migrations.Down(t.Context(), config)
	require.NoError(t, err)
	pgtest.Exec(t, pgtest.Database(t), "INSERT INTO od.ordered_dispatcher_migration (version_id, is_applied) VALUES (99999, true)")

	_, err = migrations.Up(t.Context(), config)
	require.ErrorContains(t, err, applied[len(applied)-1].Name+" is not applied, but the later version 99999 is")
	_, err = migrations.Down(t.Context(), config)
	require.ErrorContains(t, err, "version 99999 was applied by a newer program")
}

func TestUp_AMigrationThatFailsLeavesThoseBeforeItApplied(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: "od"}
	pgtest.Exec(t, pool, "CREATE SCHEMA od; CREATE DOMAIN od.dead_letter AS text", pgx.QueryExecModeSimpleProtocol)

	applied, err := migrations.Up(t.Context(), config)
	require.ErrorContains(t, err, "00002_dead_letter.sql: ")
	require.Len(t, applied, 1)
	require.Equal(t, []string{"cursor", "cursor_event", "ordered_dispatcher_migration"}, tables(t, pool, "od"))
	require.Zero(t, status(t, config)[1].AppliedAt)

	pgtest.Exec(t, pool, "DROP DOMAIN od.dead_letter")
	rest, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, "00002_dead_letter.sql", rest[0].Name)
}
