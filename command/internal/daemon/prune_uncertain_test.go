package daemon_test

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// losingCommit is the address of a server whose answer to a COMMIT is lost once a condition holds.
func losingCommit(t testing.TB, pool *pgxpool.Pool, condition string) string {
	t.Helper()
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	l.OnData(func(fromServer bool, data []byte) {
		if fromServer && bytes.Contains(data, []byte("COMMIT\x00")) && pgtest.Value[bool](t, pool, condition) {
			l.Cut()
		}
	})
	return address
}

func TestPrune_WhoseCommitIsNotAnsweredSaysThatItMayBeDone(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	config.Database = losingCommit(t, pool, "SELECT EXISTS (SELECT FROM od.cursor_pruned)")
	_, err := prune(t, config)
	require.ErrorIs(t, err, cursor.ErrUncertain)
	require.ErrorContains(t, err, "; a later pass goes on with the rows that are still there")
	require.Equal(t, 3, staying(t, pool))
}

func TestErase_WhoseCommitIsNotAnsweredNamesTheHistory(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, keyed, "keep: 1h", 2)
	exec(t, pool, "UPDATE public.bookings SET customer = 'ann' WHERE id = 2")
	const noted = "SELECT EXISTS (SELECT FROM od.cursor_event WHERE action = 'erase')"
	config.Database = losingCommit(t, pool, noted)
	_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.ErrorIs(t, err, cursor.ErrUncertain)
	require.ErrorContains(t, err, "before you do it again, check whether it was done: `ordered-dispatcher history a`")
	require.True(t, pgtest.Value[bool](t, pool, noted))
}

// It failed with an SQLSTATE alone.
func TestPrune_OnAStandbyNamesThePrimary(t *testing.T) {
	t.Parallel()
	primary, standby, onPrimary, onStandby := pair(t)
	insert(t, onPrimary, 1)
	config := ruled(t, stdoutProcess, "public.bookings", "keep: 1h")
	config.Database = primary.URL()
	untilTrue(t, onStandby, "SELECT EXISTS (SELECT FROM public.bookings)")
	for _, cursors := range []string{"none", "one"} {
		if cursors == "one" {
			deliver(t, config)
			untilTrue(t, onStandby, "SELECT position <> '' FROM od.cursor")
		}
		there := config
		there.Database = standby.URL()
		_, err := prune(t, there)
		require.ErrorContains(t, err, "the server is a standby")
		require.ErrorContains(t, err, "connect to the primary", cursors)
	}
}
