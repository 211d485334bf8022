package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A transaction chained to a COMMIT is stamped with the arrival of that COMMIT,
// which may take its time: under deferred triggers, or a slow standby.
func TestRead_NowOfAChainedTransactionIsNotSkipped(t *testing.T) {
	t.Parallel()
	pool := database(t, nowTable+`
		CREATE TABLE app.slow (id int);
		CREATE FUNCTION app.wait() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END$$;
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON app.slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.wait();`)
	for _, role := range []string{"same", "another"} {
		t.Run(role+" role", func(t *testing.T) {
			s := bookings(t, readerPool(t, pool, role), Config{Latency: time.Millisecond})
			start := s.mustEnd(t)
			gate := newSession(t, pool)
			gate.do(`SELECT pg_advisory_lock(1)`)
			chained := newSession(t, pool)
			chained.do(`BEGIN; INSERT INTO app.slow VALUES (1)`)
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
	for _, role := range []string{"same", "another"} {
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
			await(t, "the second transaction waits", func() bool {
				return value[bool](t, pool, `SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND NOT granted`)
			})
			holdsBack(t, s, start)
			gate.do(`SELECT pg_advisory_unlock(2)`)
			ended()
			require.Equal(t, []string{"second", "after"}, notes(t, readSome(t, s, start, 2)))
		})
	}
}
