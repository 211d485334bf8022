package cursor_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

func TestCreate_LeavesAStandingCursorAsItIs(t *testing.T) {
	t.Parallel()
	s := store(t, database(t), "a")
	created, err := s.Create(t.Context(), "sms", "p5")
	require.NoError(t, err)
	require.True(t, created)
	created, err = s.Create(t.Context(), "sms", "p9")
	require.NoError(t, err)
	require.False(t, created)
	row, err := s.Look(t.Context(), "sms")
	require.NoError(t, err)
	require.Equal(t, cursor.Position("p5"), row.Position)
	require.Equal(t, cursor.Running, row.State)
	require.Nil(t, row.Failure)
}

func TestCreate_ByManyWorkersAtOnceMakesOneCursorAndOneEvent(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var wg sync.WaitGroup
	made := make(chan bool, 16)
	for range cap(made) {
		wg.Go(func() {
			created, err := store(t, pool, "").Create(t.Context(), "sms", "")
			if err != nil {
				t.Error(err)
			}
			made <- created
		})
	}
	wg.Wait()
	close(made)
	var n int
	for created := range made {
		if created {
			n++
		}
	}
	require.Equal(t, 1, n)
	require.Equal(t, 1, pgtest.Value[int](t, pool, `SELECT count(*) FROM dispatch.cursor_event WHERE action = 'create'`))
}

func TestCreate_RefusesToStartADeletedCursorOver(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	exec(t, pool, `DELETE FROM dispatch.cursor`)
	_, err := s.Create(t.Context(), "sms", "")
	require.ErrorIs(t, err, cursor.ErrDeleted)
	_, err = s.Look(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrUnknown)
	created, err := s.Recreate(t.Context(), "sms", "p3")
	require.NoError(t, err)
	require.True(t, created)
}

func TestLook_TellsATypoFromACursor(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	_, err := s.Look(t.Context(), "smss")
	require.ErrorIs(t, err, cursor.ErrUnknown)
	require.ErrorContains(t, err, `"smss"`)
}

func TestList_NamesEveryProcess(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	_, err := s.Create(t.Context(), "email", "p1")
	require.NoError(t, err)
	rows, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, "email", rows[0].Process)
	require.Equal(t, "sms", rows[1].Process)
}

func TestStore_NamesTheFixForWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ breaks, fix string }{
		"no tables":  {`DROP TABLE dispatch.cursor CASCADE`, "ordered-dispatcher migrate up"},
		"no schema":  {`DROP SCHEMA dispatch CASCADE`, "ordered-dispatcher migrate up"},
		"old tables": {`ALTER TABLE dispatch.cursor DROP COLUMN holder`, "ordered-dispatcher migrate up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			exec(t, pool, test.breaks)
			_, err := s.Look(t.Context(), "sms")
			require.ErrorContains(t, err, test.fix)
			_, err = s.Acquire(t.Context(), "sms")
			require.ErrorContains(t, err, test.fix)
		})
	}
}

func TestStore_NamesTheMissingGrant(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	s := store(t, stranger(t, pool), "b")
	_, err := s.Look(t.Context(), "sms")
	require.ErrorContains(t, err, "ordered-dispatcher grants")
	_, err = s.Acquire(t.Context(), "sms")
	require.ErrorContains(t, err, "ordered-dispatcher grants")
}

func TestNewStore_RefusesASchemaThatPostgreSQLWouldCut(t *testing.T) {
	t.Parallel()
	_, err := cursor.NewStore(nil, cursor.Config{Schema: strings.Repeat("x", 64)})
	require.ErrorContains(t, err, "63 bytes")
	_, err = cursor.NewStore(nil, cursor.Config{Timeout: 1})
	require.ErrorContains(t, err, "lease timeout")
}

// TestStandby_HoldsNeitherTransactionNorTransactionID: what a worker does that
// finds the lease held, or nothing to deliver, leaves no trace that others wait for.
func TestStandby_HoldsNeitherTransactionNorTransactionID(t *testing.T) {
	t.Parallel()
	// A server of its own: transaction ids are counted for all of its databases.
	server := pgtest.Server(t, map[string]string{"autovacuum": "off"})
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: server.URL(), Schema: schema})
	require.NoError(t, err)
	acquire(t, created(t, pool, "a"))

	one := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{MaxConns: 1})
	standby := store(t, one, "b")
	before := nextXID(t, pool)
	for range 20 {
		_, err := standby.Look(t.Context(), "sms")
		require.NoError(t, err)
		_, err = standby.Acquire(t.Context(), "sms")
		require.ErrorIs(t, err, cursor.ErrHeld)
	}
	require.Equal(t, before+1, nextXID(t, pool), "only this test itself took an id")
	require.NoError(t, one.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		require.Equal(t, byte('I'), conn.Conn().PgConn().TxStatus(), "no transaction is left open")
		return nil
	}))
}

// nextXID takes a transaction id and returns it.
func nextXID(t testing.TB, pool *pgxpool.Pool) int64 {
	t.Helper()
	return pgtest.Value[int64](t, pool, `SELECT pg_current_xact_id()::text::bigint`)
}
