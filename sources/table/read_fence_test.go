package table

import (
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

func TestRead_LateCommitIsNotSkipped(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{})
	require.Empty(t, readAll(t, s, "", 10))

	late := begun(t, pool, `INSERT INTO app.bookings (id) VALUES (1)`)
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
	holdsBack(t, s, "")

	late.do(`COMMIT`)
	require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
}

func TestRead_WriterOfTheFirstSampleHoldsEverythingBack(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (1)`)
	old := begun(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)

	s := bookings(t, pool, Config{})
	holdsBack(t, s, "")

	old.do(`COMMIT`)
	require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
}

func TestRead_LowerIDOfAnEqualStampIsNotSkipped(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{})
	require.Empty(t, readAll(t, s, "", 10))

	low, high := newSession(t, pool), newSession(t, pool)
	at := pgtest.Value[time.Time](t, pool, `SELECT clock_timestamp()`)
	low.do(`BEGIN`)
	low.do(`INSERT INTO app.bookings (id, created_at) VALUES (1, $1)`, at)
	high.do(`INSERT INTO app.bookings (id, created_at) VALUES (2, $1)`, at)
	holdsBack(t, s, "")

	low.do(`COMMIT`)
	require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 1)))
}

func TestRead_IDsCommittedInAnyOrderComeInTheirOwn(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{Order: ID})
	require.Empty(t, readAll(t, s, "", 10))

	var writers []*session
	for range 3 {
		w := begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
		writers = append(writers, w)
	}
	writers[2].do(`COMMIT`)
	holdsBack(t, s, "")
	writers[0].do(`COMMIT`)
	holdsBack(t, s, "") // the fence is below all three: it knows no more than the mark before them
	writers[1].do(`ROLLBACK`)
	require.Equal(t, []string{"1", "3"}, ids(readAll(t, s, "", 10)))
}

func TestRead_SavepointThatIsRolledBackIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, order := range []Order{CreatedAt, ID} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL, Config{Order: order})
			require.Empty(t, readAll(t, s, "", 10))

			w := begun(t, pool, `SAVEPOINT a; INSERT INTO app.bookings (note) VALUES ('undone'); ROLLBACK TO a`)
			// The rollback gave the lock back, and the next insert takes it again.
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('other')`)
			require.Equal(t, []string{"other"}, notes(t, readAll(t, s, "", 10)))
			w.do(`INSERT INTO app.bookings (note) VALUES ('first'); SAVEPOINT b; INSERT INTO app.bookings (note) VALUES ('kept'); RELEASE b`)
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('last')`)
			holdsBack(t, s, last(readSome(t, s, "", 1)))
			w.do(`COMMIT`)
			require.Equal(t, []string{"other", "first", "kept", "last"}, notes(t, readAll(t, s, "", 10)))
		})
	}
}

func TestRead_RollbackLetsTheRestPass(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{})
	require.Empty(t, readAll(t, s, "", 10))

	w := begun(t, pool, `INSERT INTO app.bookings (id) VALUES (1)`)
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
	holdsBack(t, s, "")
	w.do(`ROLLBACK`)
	require.Equal(t, []string{"2"}, ids(readAll(t, s, "", 10)))
}

func TestRead_CopyInProgressHoldsBack(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{})
	require.Empty(t, readAll(t, s, "", 10))

	w := newSession(t, pool)
	pipe, feed := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		_, err := w.PgConn().CopyFrom(context.WithoutCancel(t.Context()), pipe, `COPY app.bookings (id) FROM STDIN`)
		copied <- err
	}()
	_, err := feed.Write([]byte("1\n2\n"))
	require.NoError(t, err)
	await(t, "the COPY has locked the table", func() bool { return locks(t, pool, w.pid) > 0 })
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (100)`)
	holdsBack(t, s, "")
	_, err = feed.Write([]byte("3\n"))
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	require.NoError(t, waittest.Receive(t, copied, "the COPY ends"))
	require.ElementsMatch(t, []string{"1", "2", "3", "100"}, ids(readAll(t, s, "", 10)))
}

// locks counts the locks of an inserter that a session holds.
func locks(t testing.TB, pool *pgxpool.Pool, pid uint32) int {
	t.Helper()
	return pgtest.Value[int](t, pool, `SELECT count(*) FROM pg_locks WHERE pid = $1 AND mode = 'RowExclusiveLock' AND granted`, int(pid))
}

func TestRead_UnrelatedTransactionsHoldNothingUp(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Config{"clock_timestamp": {}, "id": {Order: ID}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL+`CREATE TABLE app.other (id int)`)
			for _, work := range []string{
				`BEGIN; INSERT INTO app.other VALUES (1)`,
				`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM app.bookings`,
				`BEGIN; INSERT INTO app.other VALUES (2); PREPARE TRANSACTION '` + pool.Config().ConnConfig.Database + name + `'`,
			} {
				newSession(t, pool).do(work)
			}
			s := bookings(t, pool, config)
			for i := range 3 {
				exec(t, pool, `INSERT INTO app.bookings (id) VALUES (nextval('app.bookings_id_seq'))`)
				require.Len(t, readAll(t, s, "", 10), i+1)
			}
		})
	}
}

func TestRead_DeletedRecordOfTheCursorChangesNothing(t *testing.T) {
	t.Parallel()
	for _, order := range []Order{CreatedAt, ID} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 5)`, Config{Order: order})
			records := readAll(t, s, "", 10)
			require.Len(t, records, 5)
			exec(t, pool, `DELETE FROM app.bookings WHERE id <= 3`)
			require.Equal(t, []string{"4", "5"}, ids(readAll(t, s, records[2].Position, 10)))
		})
	}
}

func TestRead_TiesArePagedThrough(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`INSERT INTO app.bookings SELECT FROM generate_series(1, 10000)`)
	require.Equal(t, 1, pgtest.Value[int](t, pool, `SELECT count(DISTINCT created_at) FROM app.bookings`))
	s := bookings(t, pool, Config{Latency: time.Millisecond})
	records := readAll(t, s, "", 100)
	require.Len(t, records, 10000)
	for i, r := range records {
		require.Equal(t, strconv.Itoa(i+1), r.ID)
	}
}
