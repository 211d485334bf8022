package migrations_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// longest is more than any wait of these tests.
const longest = 30 * time.Second

func up(config migrations.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	_, err := migrations.Up(ctx, config)
	return err
}

func statusOf(config migrations.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	_, err := migrations.Status(ctx, config)
	return err
}

func TestMigrate_NothingBeforeAMigrationWaitsForEver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call   func(migrations.Config) error
		silent string // the question that is not answered; "" = none is, nor is a connection made
		waited string
	}{
		{up, "", "no connection to the database"},
		{statusOf, "", "no connection to the database"},
		{up, "/* migrations.session */", "ask for the session: no answer in time"},
		{up, "/* migrations.lock */", "wait for the lock of migrations: no answer in time"},
		{up, "/* migrations.schema */", "look for the schema, or make it: no answer in time"},
		{statusOf, "/* migrations.applied */", "read the version table: no answer in time"},
	} {
		t.Run(c.waited, func(t *testing.T) {
			t.Parallel()
			address, l := pgtest.Proxy(t, pgtest.URL(t))
			config := migrations.Config{ConnString: address}.Within(longest, 3*time.Second)
			found := l.Hold(link.Server, func(data []byte) bool { return c.silent != "" && bytes.Contains(data, []byte(c.silent)) })
			if c.silent == "" {
				l.Stall()
				config = config.Within(time.Second, longest)
			}
			err := c.call(config)
			if c.silent != "" {
				<-found
			}
			require.ErrorIs(t, err, answer.ErrNone)
			require.ErrorContains(t, err, c.waited)
		})
	}
}

func TestUp_NamesTheSessionThatHoldsTheLockOfMigrations(t *testing.T) {
	t.Parallel()
	other, err := pgtest.Database(t).Acquire(t.Context())
	require.NoError(t, err)
	defer other.Release()
	pgtest.Exec(t, other, "SELECT pg_advisory_lock(hashtextextended('ordered-dispatcher migrate public', 0))")
	err = up(migrations.Config{ConnString: pgtest.URL(t)}.LockWithin(200 * time.Millisecond))
	require.ErrorIs(t, err, answer.ErrNone)
	require.ErrorContains(t, err, fmt.Sprintf("wait for the lock of migrations: no answer in time: not free within 200ms, held by pid %d (application '", other.Conn().PgConn().PID()))
	require.ErrorContains(t, err, "then run it again")
}

// TestMigrations_NameTheCauseOfAFailedConnectionOnce: the driver tries with TLS and without it.
func TestMigrations_NameTheCauseOfAFailedConnectionOnce(t *testing.T) {
	t.Parallel()
	config := migrations.Config{Schema: "od", ConnString: "postgres://u@" + tcptest.Closed(t) + "/d"}
	_, up := migrations.Up(t.Context(), config)
	_, status := migrations.Status(t.Context(), config)
	for _, err := range []error{up, status} {
		require.ErrorContains(t, err, "connection refused")
		require.Equal(t, 1, strings.Count(err.Error(), "refused"), err)
		require.NotContains(t, err.Error(), "\n")
	}
}
