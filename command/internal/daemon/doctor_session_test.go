package daemon_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestDoctor_SaysThatAPoolerStandsBetween(t *testing.T) {
	t.Parallel()
	database(t)
	for mode, want := range map[string]daemon.Finding{
		"transaction": {"", daemon.Note, "a pooler stands between: it must hold 4 server connections", ""},
		"session":     {"", daemon.Note, "a pooler stands between: it must hold 4 server connections", ""},
		"statement":   {"", daemon.Refuse, "does not let a transaction through", "set pool_mode = transaction"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			requireFinding(t, doctor(t, configure(t, pgtest.Bouncer{PoolMode: mode}.Start(t, pgtest.URL(t)), stdoutProcess)), want)
		})
	}
}

func TestDoctor_WarnsOfSettingsThatCutALeaseShort(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role, address := stranger(t, pool)
	exec(t, pool, `ALTER ROLE "`+role+`" SUPERUSER`)
	config := configure(t, address, stdoutProcess)
	require.Empty(t, doctor(t, config))

	exec(t, pool, `ALTER ROLE "`+role+`" SET statement_timeout = '200ms'`)
	f := requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "end after 200ms (statement_timeout)", `ALTER ROLE "` + role + `" SET statement_timeout = '30s'`})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))

	if count(t, pool, "SELECT current_setting('server_version_num')::int") < 170000 {
		return // has no transaction_timeout
	}
	exec(t, pool, `ALTER ROLE "`+role+`" SET transaction_timeout = '5s'`)
	f = requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "end after 5s (transaction_timeout)", `SET transaction_timeout = 0`})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))
}

// Leases commit durably whatever the role says; producers do as the database says.
func TestDoctor_WarnsOfCommitsThatACrashLoses(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role, address := stranger(t, pool)
	exec(t, pool, `ALTER ROLE "`+role+`" SUPERUSER; ALTER ROLE "`+role+`" SET synchronous_commit = off`)
	require.Empty(t, doctor(t, configure(t, address, stdoutProcess)))

	exec(t, pool, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$")
	config := configure(t, pgtest.URL(t), stdoutProcess)
	f := requireFinding(t, doctor(t, config), daemon.Finding{"", daemon.Warn, "synchronous_commit is off for all of the database", "SET synchronous_commit = on"})
	exec(t, pool, f.Fix)
	require.Empty(t, doctor(t, config))
}

func TestDoctor_NotesAnEncodingOfAnyBytes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	name := pool.Config().ConnConfig.Database + "_raw"
	exec(t, pool, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		require.NoError(t, err)
	})
	findings := doctor(t, configure(t, withDatabase(t, pgtest.URL(t), name), stdoutProcess))
	requireFinding(t, findings, daemon.Finding{"", daemon.Note, "is SQL_ASCII: its texts may hold any bytes", ""})
}

func TestDoctor_WarnsOfHostsThatMayBeStandbys(t *testing.T) {
	t.Parallel()
	require.False(t, daemon.MayTakeAnyHost(t, "host=a,b sslmode=require"), "the primary is asked for by itself")
	require.False(t, daemon.MayTakeAnyHost(t, "host=a sslmode=require target_session_attrs=any"))
	require.True(t, daemon.MayTakeAnyHost(t, "host=a,b sslmode=require target_session_attrs=any"))
}

func TestDoctor_NamesMigrationsThatAreMissing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "DELETE FROM od.ordered_dispatcher_migration WHERE version_id = (SELECT max(version_id) FROM od.ordered_dispatcher_migration)")
	f := requireFinding(t, doctor(t, configure(t, pgtest.URL(t), stdoutProcess)), daemon.Finding{"", daemon.Refuse, "migrations are not applied: 0", "ordered-dispatcher migrate up"})
	require.True(t, strings.HasSuffix(f.Problem, ".sql"), f.Problem)
}
