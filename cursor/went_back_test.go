package cursor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// TestSeen_AServerWhoseLogWentBack: the numbers of the cursor have moved on since, by a decision that came before any worker looked.
// A server that only starts again, or whose statistics are reset, has all that its disk had.
func TestSeen_AServerWhoseLogWentBack(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: server.URL(), Schema: schema})
	require.NoError(t, err)
	on := func() (*cursor.Store, func(sql string)) {
		pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
		s, err := cursor.NewStore(pool, cursor.Config{Schema: schema, Worker: "a"})
		require.NoError(t, err)
		return s, func(sql string) {
			pgtest.Exec(t, pool, sql)
		}
	}
	look := func(s *cursor.Store) cursor.Row {
		row, err := s.Observe(t.Context(), "sms")
		require.NoError(t, err)
		return row
	}
	reading := func(seen cursor.Seen) cursor.Seen {
		pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
		pgtest.Exec(t, pool, "SELECT txid_current()")
		var run string
		var log int64
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT "+prepared.RunSQL+", pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint").Scan(&run, &log))
		return seen.Kept(run, log)
	}
	s, _ := on()
	_, err = s.Create(t.Context(), "sms", "")
	require.NoError(t, err)
	require.NoError(t, server.Snapshot(t.Context()))

	s, exec := on()
	var seen cursor.Seen
	seen = seen.See(look(s)).On(look(s))
	idle := seen // reads nothing
	exec("CREATE TABLE public.since ()")
	seen = reading(seen) // and never again: a process that is paused or halted reads nothing
	for _, c := range []struct {
		name    string
		happens func()
	}{
		{"its statistics are reset", func() { exec("SELECT pg_stat_reset_shared('bgwriter')") }},
		{"it starts again", func() {
			require.NoError(t, server.StopFast(t.Context()))
			require.NoError(t, server.Restart(t.Context()))
		}},
		{"it crashes", func() {
			require.NoError(t, server.StopImmediate(t.Context()))
			require.NoError(t, server.Restart(t.Context()))
		}},
	} {
		c.happens()
		s, exec = on()
		seen, idle = seen.On(look(s)), idle.On(look(s))
		require.False(t, seen.Before(look(s)), c.name)
	}
	require.NoError(t, server.PutBack(t.Context()))
	s, _ = on()
	_, err = s.Create(t.Context(), "mail", "") // made anew in the place of one that was lost
	require.NoError(t, err)
	other, err := s.Observe(t.Context(), "mail")
	require.NoError(t, err)
	anew := seen.On(other).See(other)
	_, err = operator.New(s).Seek(t.Context(), "sms", "b", cursor.Decision{Actor: "me", Reason: "before any worker looks"})
	require.NoError(t, err)
	row := look(s)
	seen = seen.On(row)
	require.True(t, seen.Before(row))
	require.True(t, idle.On(row).Lost(row))
	require.True(t, seen.On(row).See(row).Before(row), "it looks again")
	require.ErrorIs(t, s.HaltRestored(t.Context(), "sms", seen), cursor.ErrHalted)
	require.Equal(t, cursor.ClassRestored, look(s).Failure.Class)
	_, err = operator.New(s).Retry(t.Context(), "sms", cursor.Decision{Actor: "me"})
	require.NoError(t, err)
	require.False(t, seen.Before(look(s)), "an operator has decided")

	require.NoError(t, server.StopFast(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	s, _ = on()
	other, err = s.Observe(t.Context(), "mail")
	require.NoError(t, err)
	require.True(t, anew.On(other).Before(other), "nobody has decided on what the one before it had sent")
}

// TestSeen_APauseSinceTheSnapshotIsKnownByALook: nothing was written between the two, and a process that is paused reads nothing. It ran
// on the restored server, with the pause lost.
func TestSeen_APauseSinceTheSnapshotIsKnownByALook(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: server.URL(), Schema: schema})
	require.NoError(t, err)
	on := func() *cursor.Store {
		s, err := cursor.NewStore(pgtest.Pool(t, server.URL(), pgtest.PoolConfig{}), cursor.Config{Schema: schema, Worker: "a"})
		require.NoError(t, err)
		return s
	}
	look := func(s *cursor.Store) cursor.Row {
		row, err := s.Observe(t.Context(), "sms")
		require.NoError(t, err)
		return row
	}
	_, err = on().Create(t.Context(), "sms", "")
	require.NoError(t, err)
	require.NoError(t, server.Snapshot(t.Context()))

	s := on()
	seen := cursor.Seen{}.See(look(s)).On(look(s))
	_, err = operator.New(s).Pause(t.Context(), "sms", cursor.Decision{Actor: "me"})
	require.NoError(t, err)
	before := seen.Log()
	require.Eventually(t, func() bool {
		seen = seen.On(look(s))
		return seen.Log() > before
	}, patience, time.Millisecond, "until the disk has the log up to a look")
	require.NoError(t, server.PutBack(t.Context()))
	row := look(on())
	require.Equal(t, cursor.Running, row.State)
	require.True(t, seen.On(row).Before(row))
}
