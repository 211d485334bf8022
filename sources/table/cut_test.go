package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// cutSQL is a table whose reads wait for the lock of one of its parts.
const cutSQL = `
CREATE SCHEMA app; CREATE SEQUENCE app.s;
CREATE TABLE app.bookings (
	id bigint NOT NULL DEFAULT nextval('app.s'),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	region int NOT NULL DEFAULT 1,
	note text,
	PRIMARY KEY (created_at, id, region)
) PARTITION BY LIST (region);
CREATE TABLE app.locked PARTITION OF app.bookings FOR VALUES IN (0);
CREATE TABLE app.b1 PARTITION OF app.bookings FOR VALUES IN (1);`

// linked is a pool behind a link, and the link.
func linked(t *testing.T) (*pgxpool.Pool, *link.Link) {
	t.Helper()
	address, l := pgtest.Proxy(t, pgtest.URL(t))
	pool := pgtest.Pool(t, address, pgtest.PoolConfig{})
	t.Cleanup(l.Close) // first: what it holds up keeps the pool from closing
	return pool, l
}

const waitingReadSQL = `SELECT %s FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%/* source.%%' AND datname = current_database()`

// answered is what a Read returned.
type answered struct {
	page processor.Page
	err  error
}

// reader calls Read, once, while others break its connections.
func reader(t *testing.T, s *Source, after cursor.Position) <-chan answered {
	t.Helper()
	done := make(chan answered, 1)
	go func() {
		page, err := s.Read(t.Context(), after, 10)
		done <- answered{page, err}
	}()
	return done
}

// A connection that ends while the server looks for the first row is no sign of a row that
// is too large, however often that happens, and by whom.
func TestRead_AConnectionThatEndsMakesNoRowTooLarge(t *testing.T) {
	t.Parallel()
	for _, how := range []string{byOperator, byNetwork} {
		for _, where := range []string{"", "id > 0"} {
			t.Run(how+where, func(t *testing.T) {
				t.Parallel()
				admin := database(t, cutSQL+`INSERT INTO app.bookings (note) VALUES ('one')`)
				pool, l := linked(t)
				s := bookings(t, pool, Config{Where: where})
				at := readSome(t, s, "", 1)[0].Position
				exec(t, admin, `INSERT INTO app.bookings (note) VALUES ('two, healthy')`)
				later(t, admin)
				holder := newSession(t, admin)
				for times := range 5 {
					holder.do(`BEGIN; LOCK TABLE app.locked IN ACCESS EXCLUSIVE MODE`)
					done := reader(t, s, at)
					endReads(t, admin, l, how, times, done)
					holder.do(`COMMIT`)
					got := waittest.Receive(t, done, "the read ends")
					if got.err == nil {
						require.Equal(t, []string{"two, healthy"}, notes(t, got.page.Records), "ended %d times", times)
						require.NoError(t, got.page.Records[0].Fault, "ended %d times", times)
					}
					require.False(t, processor.IsPermanent(got.err), got.err)
					records := readAll(t, s, at, 10)
					require.Equal(t, []string{"two, healthy"}, notes(t, records))
					require.NoError(t, records[0].Fault)
				}
			})
		}
	}
}

const (
	byOperator = "ended by an operator"
	byNetwork  = "cut by the network"
)

// endReads ends the connection of a read that waits for a lock, so many times or until Read has
// returned.
func endReads(t *testing.T, admin *pgxpool.Pool, l *link.Link, how string, times int, done <-chan answered) {
	t.Helper()
	for range times {
		pid := 0
		await(t, "a read waits for the lock, or has returned", func() bool {
			pid = pgtest.Value[int](t, admin, fmt.Sprintf(waitingReadSQL, "coalesce(min(pid), 0)"))
			return pid != 0 || len(done) > 0
		})
		if how == byNetwork {
			l.Cut()
		}
		exec(t, admin, `SELECT pg_terminate_backend($1)`, pid)
		await(t, "its session is gone", func() bool {
			return pgtest.Value[bool](t, admin, `SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $1`, pid)
		})
	}
}

// Rows of all sizes, and connections that end at any of their reads: what comes is whole, or
// really is too large.
func TestRead_TortureOfConnectionsThatEnd(t *testing.T) {
	t.Parallel()
	const size, bound = 200_000, 10_000
	shared := strings.Replace(cutSQL, "PRIMARY KEY (created_at, id, region)", "PRIMARY KEY (id, region)", 1) + `CREATE INDEX ON app.bookings (created_at, id);`
	for name, sql := range map[string]string{"unique positions": cutSQL, "shared positions": shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := database(t, sql)
			random := rand.New(rand.NewPCG(pgtest.Seed(t), 0))
			pool, l := linked(t)
			s := bookings(t, pool, Config{MaxRecordBytes: bound, Columns: Columns{Key: "note", Payload: "id"}})
			holder := newSession(t, admin)
			var after cursor.Position
			for range 12 {
				var large []bool
				for range 1 + random.IntN(3) {
					large = append(large, random.IntN(3) == 0)
					exec(t, admin, `INSERT INTO app.bookings (note) VALUES (repeat('x', CASE WHEN $1 THEN $2 ELSE 10 END))`, large[len(large)-1], size)
				}
				later(t, admin)
				holder.do(`BEGIN; LOCK TABLE app.locked IN ACCESS EXCLUSIVE MODE`)
				done := reader(t, s, after)
				endReads(t, admin, l, []string{byOperator, byNetwork}[random.IntN(2)], random.IntN(5), done)
				holder.do(`COMMIT`)
				got := waittest.Receive(t, done, "the read ends")
				require.False(t, processor.IsPermanent(got.err), got.err)
				records := got.page.Records
				if len(records) > 0 {
					after = last(records)
				}
				records = append(slices.Clone(records), readAll(t, s, after, 1+random.IntN(3))...)
				require.Len(t, records, len(large))
				for i, r := range records {
					require.Equal(t, large[i], r.Fault != nil, "record %s: %v", r.ID, r.Fault)
					if large[i] {
						require.ErrorContains(t, r.Fault, "max_record_bytes is")
					}
				}
				after = last(records)
			}
		})
	}
}
