package table

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Without the times of other sessions no bound of theirs is known, so nothing is
// read; a default that is made after the lock needs none of them.
func TestRead_NowIsRefusedToARoleThatDoesNotSeeAllSessions(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`INSERT INTO app.bookings DEFAULT VALUES`)
	s := bookings(t, readerPool(t, pool, "another"), Config{Latency: time.Millisecond})
	_, err := s.Read(t.Context(), "", 10)
	require.True(t, processor.IsPermanent(err))
	fixed(t, pool, s, "may not see when those of other sessions began")
	require.Len(t, readAll(t, s, "", 10), 1)

	exec(t, pool, `ALTER TABLE app.bookings ALTER created_at SET DEFAULT clock_timestamp()`)
	sound(t, bookings(t, readerPool(t, pool, "another"), Config{}))
}

// Where the role is a member and does not inherit, it sees no more than any other.
func TestRead_NowIsRefusedToAMemberThatDoesNotInherit(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`INSERT INTO app.bookings DEFAULT VALUES`)
	name, readers := user(t, pool)
	exec(t, pool, fmt.Sprintf(`GRANT USAGE ON SCHEMA app TO %[1]s; GRANT SELECT ON app.bookings TO %[1]s;
		ALTER ROLE %[1]s NOINHERIT; GRANT pg_read_all_stats TO %[1]s`, name))
	s := bookings(t, readers, Config{Latency: time.Millisecond})
	if pgtest.Value[int](t, pool, `SELECT current_setting('server_version_num')::int`) < 160000 {
		fixed(t, pool, s, "may not see when those of other sessions began")
		require.Len(t, readAll(t, s, "", 10), 1)
	}
}

// The grant is looked at with every read, not only when the table is inspected.
func TestRead_NowEndsWithTheRightToSeeSessions(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`INSERT INTO app.bookings DEFAULT VALUES`)
	readers := readerPool(t, pool, "stats")
	s := bookings(t, readers, Config{Latency: time.Millisecond})
	records := readAll(t, s, "", 10)
	newSession(t, pool).do(`SELECT 1`)
	role := readers.Config().ConnConfig.User
	exec(t, pool, `REVOKE pg_read_all_stats FROM `+role)
	_, err := s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, "our role may not see when the transactions of session")
	_, err = s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, fmt.Sprintf(`fix: GRANT pg_read_all_stats TO "%s"`, role))
	exec(t, pool, `GRANT pg_read_all_stats TO `+role)
	require.Empty(t, readAll(t, s, last(records), 10))
}

// A session that does not report what it does is not taken for one that does
// nothing.
func TestRead_NowWaitsForASessionThatDoesNotTrackItsActivity(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`INSERT INTO app.bookings DEFAULT VALUES`)
	s := bookings(t, readerPool(t, pool, "stats"), Config{Latency: time.Millisecond})
	records := readAll(t, s, "", 10)
	silent := newSession(t, pool)
	silent.do(`SET track_activities = off`)
	silent.do(`BEGIN`)
	exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('after')`)
	later(t, pool)
	_, err := s.Read(t.Context(), last(records), 10)
	require.ErrorContains(t, err, fmt.Sprintf("session %d runs with track_activities off", silent.pid))
	require.False(t, processor.IsPermanent(err))
	silent.do(`INSERT INTO app.bookings (note) VALUES ('silent'); COMMIT`)
	silent.do(`SET track_activities = on`)
	require.Equal(t, []string{"silent", "after"}, notes(t, readAll(t, s, last(records), 10)))
}

// TestInspect_SessionsThatDoNotTrackTheirActivityAreNamed: each read fails safely beside
// one; what makes all sessions so is found before.
func TestInspect_SessionsThatDoNotTrackTheirActivityAreNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable)
	exec(t, pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_activities = off', current_database()); END $$`)
	off := readerPool(t, pool, "stats")
	require.Equal(t, Warn, found(t, bookings(t, off, Config{}), "track_activities is off").Severity)
	exec(t, pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET track_activities', current_database()); END $$`)
	findings, err := bookings(t, readerPool(t, pool, "stats"), Config{}).Inspect(t.Context())
	require.NoError(t, err)
	for _, f := range findings {
		require.NotContains(t, f.Problem, "track_activities")
	}
}
