package table

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// A backend may be stopped between the stamp of now() and the moment its
// transaction can be seen, so a record is given a second (docs/decisions/0003).
func TestRead_RecordOfNowWaitsASecond(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, nowTable+`INSERT INTO app.bookings DEFAULT VALUES`, Config{})
	require.Len(t, readAll(t, s, "", 1), 1)
	require.True(t, pgtest.Value[bool](t, pool, `SELECT clock_timestamp() - created_at >= interval '1 second' FROM app.bookings`))

	s = bookings(t, pool, Config{Latency: time.Minute})
	require.True(t, read(t, s, "", 1).Waiting, "or whatever the configuration says")
}

// A transaction chained to a COMMIT is stamped with the arrival of that COMMIT,
// which may take its time: under deferred triggers, or a slow standby.
func TestRead_NowOfAChainedTransactionIsNotSkipped(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`
		CREATE TABLE app.slow (id int);
		CREATE FUNCTION app.wait() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END$$;
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON app.slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.wait();`)
	for _, role := range []string{"same", "stats"} {
		t.Run(role+" role", func(t *testing.T) {
			s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
			start := s.mustEnd(t)
			gate := newSession(t, pool)
			gate.do(`SELECT pg_advisory_lock(1)`)
			chained := begun(t, pool, `INSERT INTO app.slow VALUES (1)`)
			read(t, s, start, 10)
			committed := chained.start(pool, `COMMIT AND CHAIN`)
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('after')`)
			holdsBack(t, s, start)
			gate.do(`SELECT pg_advisory_unlock(1)`)
			committed()
			chained.do(`INSERT INTO app.bookings (note) VALUES ('chained')`)
			holdsBack(t, s, start)
			chained.do(`COMMIT`)
			records := readSome(t, s, start, 2)
			require.Equal(t, []string{"chained", "after"}, notes(t, records))
		})
	}
}

// All transactions in one message of the simple protocol are stamped with its
// arrival.
func TestRead_NowOfASecondTransactionInOneMessageIsNotSkipped(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable)
	for _, role := range []string{"same", "stats"} {
		t.Run(role+" role", func(t *testing.T) {
			s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
			start := s.mustEnd(t)
			gate := newSession(t, pool)
			gate.do(`SELECT pg_advisory_lock(1), pg_advisory_lock(2)`)
			many := newSession(t, pool)
			read(t, s, start, 10)
			ended := many.start(pool, `
				BEGIN; SELECT pg_advisory_lock(1); COMMIT;
				BEGIN; INSERT INTO app.bookings (note) VALUES ('second'); SELECT pg_advisory_lock(2); COMMIT`)
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('after')`)
			holdsBack(t, s, start)
			gate.do(`SELECT pg_advisory_unlock(1)`)
			waitsAtGate(t, pool, 2)
			holdsBack(t, s, start)
			gate.do(`SELECT pg_advisory_unlock(2)`)
			ended()
			require.Equal(t, []string{"second", "after"}, notes(t, readSome(t, s, start, 2)))
		})
	}
}

// waitsAtGate waits until a session of this database waits for an advisory lock.
func waitsAtGate(t *testing.T, pool *pgxpool.Pool, gate int) {
	t.Helper()
	await(t, "a session waits at the gate", func() bool {
		return pgtest.Value[bool](t, pool, `SELECT count(*) = 1 FROM pg_locks
			WHERE locktype = 'advisory' AND objid = $1 AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, gate)
	})
}

// After a COMMIT in a procedure now() is the time, but statement_timestamp() still
// the arrival of the CALL.
func TestRead_StatementTimestampOfAProcedureIsNotSkipped(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`
		ALTER TABLE app.bookings ALTER created_at SET DEFAULT statement_timestamp();
		CREATE PROCEDURE app.import() LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_lock(1);
			COMMIT;
			INSERT INTO app.bookings (note) VALUES ('called');
			PERFORM pg_advisory_lock(2);
		END$$;`)
	for _, role := range []string{"same", "stats"} {
		t.Run(role+" role", func(t *testing.T) {
			s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
			start := s.mustEnd(t)
			gate := newSession(t, pool)
			gate.do(`SELECT pg_advisory_lock(1), pg_advisory_lock(2)`)
			caller := newSession(t, pool)
			read(t, s, start, 10)
			ended := caller.start(pool, `CALL app.import()`)
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('after')`)
			holdsBack(t, s, start)
			gate.do(`SELECT pg_advisory_unlock(1)`)
			waitsAtGate(t, pool, 2)
			holdsBack(t, s, start)
			gate.do(`SELECT pg_advisory_unlock(2)`)
			ended()
			caller.do(`SELECT pg_advisory_unlock_all()`)
			require.Equal(t, []string{"called", "after"}, notes(t, readSome(t, s, start, 2)))
		})
	}
}

// The prepared transaction has another name than the session had, and must not be
// taken for one that began after the last sample.
func TestRead_PreparedTransactionKeepsItsBound(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{"clock_timestamp": bookingsSQL, "now": nowTable} {
		for _, role := range []string{"same", "stats"} {
			t.Run(name+" "+role+" role", func(t *testing.T) {
				t.Parallel()
				pool := database(t, sql)
				s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
				require.Empty(t, readAll(t, s, "", 10))

				gid := literal(pool.Config().ConnConfig.Database)
				w := begun(t, pool, `INSERT INTO app.bookings (id) VALUES (1)`)
				exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
				holdsBack(t, s, "")
				w.do(`PREPARE TRANSACTION ` + gid)
				holdsBack(t, s, "")
				exec(t, pool, `COMMIT PREPARED `+gid)
				require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
			})
		}
	}
}

func TestRead_PreparedBetweenTwoReadsHoldsBack(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{"clock_timestamp": bookingsSQL, "now": nowTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, sql, Config{Latency: time.Millisecond})
			require.Empty(t, readAll(t, s, "", 10))
			gid := literal(pool.Config().ConnConfig.Database)
			exec(t, pool, `BEGIN; INSERT INTO app.bookings (id) VALUES (1); PREPARE TRANSACTION `+gid)
			exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
			holdsBack(t, s, "")
			require.Empty(t, ids(read(t, bookings(t, pool, Config{}), "", 10).Records), "nor may one that begins now")
			exec(t, pool, `ROLLBACK PREPARED `+gid)
			require.Equal(t, []string{"2"}, ids(readAll(t, s, "", 10)))
		})
	}
}

// A report that only reads might still insert, with the stamp of its start.
func TestRead_LongReportHoldsUpOnlyTheTableWithNow(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"same", "stats"} {
		t.Run(role+" role", func(t *testing.T) {
			t.Parallel()
			pool := database(t, nowTable)
			s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
			require.Empty(t, readAll(t, s, "", 10))

			report := begun(t, pool, `SELECT count(*) FROM pg_class`)
			exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
			holdsBack(t, s, "")
			report.do(`INSERT INTO app.bookings (id) VALUES (1); COMMIT`)
			require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
		})
	}
}

func TestRead_TransactionsOfOtherDatabasesHoldNothingUp(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable)
	name := pool.Config().ConnConfig.Database + "_other"
	exec(t, pool, `CREATE DATABASE `+name+` TEMPLATE template0`)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`)
		require.NoError(t, err)
	})
	address := strings.Replace(pool.Config().ConnString(), "/"+pool.Config().ConnConfig.Database, "/"+name, 1)
	other := newSession(t, pgtest.Pool(t, address, pgtest.PoolConfig{}))
	other.do(`CREATE SCHEMA s; CREATE TABLE s.x (); BEGIN; INSERT INTO s.x DEFAULT VALUES`)

	s := bookings(t, pool, Config{Latency: time.Millisecond})
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (1)`)
	require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)))
}

// Leases of Each and Batch stay open over sink calls and write nothing but a
// cursor. Those of InTx carry effects, which may be rows of this table.
func TestRead_OurOwnLeasesHoldUpATableWithNowOnlyIfTheyCarryEffects(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`CREATE SCHEMA dispatch`)
	_, err := migrations.Up(t.Context(), migrations.Config{ConnString: pool.Config().ConnString(), Schema: "dispatch"})
	require.NoError(t, err)
	store, err := cursor.NewStore(pool, cursor.Config{Schema: "dispatch"})
	require.NoError(t, err)
	for _, process := range []string{"each", "tx"} {
		_, err := store.Create(t.Context(), process, "")
		require.NoError(t, err)
	}
	for _, role := range []string{"same", "stats"} {
		t.Run(role+" role", func(t *testing.T) {
			start := bookings(t, pool, Config{}).mustEnd(t)
			s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
			read(t, s, start, 10)

			each, err := store.Acquire(t.Context(), "each")
			require.NoError(t, err)
			defer each.Release()
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('a')`)
			if role == "stats" { // it cannot tell that the lease is one of ours
				holdsBack(t, s, start)
				return
			}
			records := readAll(t, s, start, 10)
			require.Equal(t, []string{"a"}, notes(t, records))

			tx, err := store.AcquireTx(t.Context(), "tx", 0)
			require.NoError(t, err)
			defer tx.Release()
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('b')`)
			holdsBack(t, s, last(records))
			tx.Release()
			require.Equal(t, []string{"b"}, notes(t, readAll(t, s, last(records), 10)))
		})
	}
}
