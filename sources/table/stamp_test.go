package table

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The server prints each default, and makes the stamps that the verdict is about.
func TestReadDefault_AsTheServerPrintsIt(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE SCHEMA app;
		CREATE FUNCTION app.now() RETURNS timestamptz LANGUAGE sql RETURN pg_catalog.now();
		CREATE FUNCTION app.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN pg_catalog.now();`)
	const (
		aware = "timestamptz"
		local = "timestamp"
	)
	after, start, elsewhere := stampAfterLock, stampAtStart, stampElsewhere
	for _, c := range []struct {
		atType, expression string
		want               stamping
	}{
		{aware, "clock_timestamp()", stamping{stamp: after}},
		{aware, "pg_catalog.clock_timestamp()", stamping{stamp: after}},
		{aware, "(((clock_timestamp())))", stamping{stamp: after}},
		{aware, "clock_timestamp()::timestamptz(0)", stamping{after, time.Second, false}},
		{aware, "CAST(clock_timestamp() AS timestamptz(4))", stamping{after, 100 * time.Microsecond, false}},
		{aware, "clock_timestamp()::timestamptz(6)", stamping{stamp: after}},
		{aware, "now()", stamping{stamp: start}},
		{aware, "transaction_timestamp()", stamping{stamp: start}},
		{aware, "statement_timestamp()", stamping{stamp: start}},
		{aware, "CURRENT_TIMESTAMP", stamping{stamp: start}},
		{aware, "CURRENT_TIMESTAMP(3)", stamping{start, time.Millisecond, false}},
		{aware, "CURRENT_TIMESTAMP(6)", stamping{stamp: start}},
		{aware, "'now'::text::timestamptz", stamping{stamp: start}},
		{aware, "'now'::text::timestamptz(1)", stamping{start, 100 * time.Millisecond, false}},

		// In a timestamptz these are off by the distance of the session's zone from UTC.
		{aware, "now() AT TIME ZONE 'utc'", stamping{start, 0, true}},
		{aware, "now() AT TIME ZONE 'utc' AT TIME ZONE 'utc'", stamping{stamp: start}},
		{aware, "timezone('UTC', clock_timestamp())", stamping{after, 0, true}},
		// And these by an hour, once a year.
		{aware, "clock_timestamp()::timestamp", stamping{after, 0, true}},
		{aware, "LOCALTIMESTAMP", stamping{start, 0, true}},
		{aware, "NULL", stamping{stamp: elsewhere}},
		{aware, "'now'", stamping{stamp: elsewhere}}, // the time of the CREATE TABLE
		{aware, "'infinity'", stamping{stamp: elsewhere}},
		{aware, "timestamptz '2026-01-01'", stamping{stamp: elsewhere}},
		{aware, "timeofday()::timestamptz", stamping{stamp: elsewhere}},
		{aware, "CURRENT_DATE", stamping{stamp: elsewhere}},
		{aware, "date_trunc('second', now())", stamping{stamp: elsewhere}},
		{aware, "now() + interval '1 hour'", stamping{stamp: elsewhere}},
		{aware, "coalesce(NULL, clock_timestamp())", stamping{stamp: elsewhere}},
		{aware, "app.now()", stamping{stamp: elsewhere}},
		{aware, "app.clock_timestamp()", stamping{stamp: elsewhere}},

		{local, "clock_timestamp()", stamping{after, 0, true}},
		{local, "clock_timestamp()::timestamp(3)", stamping{after, time.Millisecond, true}},
		{local, "clock_timestamp() AT TIME ZONE 'utc'", stamping{stamp: after}},
		{local, "(clock_timestamp() AT TIME ZONE 'utc')::timestamp(3)", stamping{after, time.Millisecond, false}},
		{local, "timezone('UTC', clock_timestamp())", stamping{stamp: after}},
		{local, "clock_timestamp() AT TIME ZONE 'Etc/GMT'", stamping{stamp: after}},
		{local, "timezone('utc', now()::timestamptz(2))", stamping{start, 10 * time.Millisecond, false}},
		{local, "now()", stamping{start, 0, true}},
		{local, "now()::timestamp", stamping{start, 0, true}},
		{local, "now()::timestamp AT TIME ZONE 'utc'", stamping{start, 0, true}},
		{local, "LOCALTIMESTAMP AT TIME ZONE 'utc'", stamping{start, 0, true}},
		{local, "now() AT TIME ZONE 'utc' AT TIME ZONE 'utc'", stamping{start, 0, true}},
		{local, "(now() AT TIME ZONE 'utc')::timestamptz", stamping{start, 0, true}},
		{local, "'now'::text::timestamp", stamping{start, 0, true}},
		{local, "'now'::text::timestamptz AT TIME ZONE 'utc'", stamping{stamp: start}},
		{local, "CURRENT_TIMESTAMP AT TIME ZONE 'Etc/UTC'", stamping{stamp: start}},
		{local, "LOCALTIMESTAMP", stamping{start, 0, true}},
		{local, "LOCALTIMESTAMP(5)", stamping{start, 10 * time.Microsecond, true}},
		{local, "clock_timestamp() AT TIME ZONE 'Europe/Berlin'", stamping{stamp: elsewhere}},
		{local, "clock_timestamp() AT TIME ZONE current_setting('TimeZone')", stamping{stamp: elsewhere}},
	} {
		t.Run(c.atType+" "+c.expression, func(t *testing.T) {
			exec(t, pool, fmt.Sprintf(`DROP TABLE IF EXISTS app.t; CREATE TABLE app.t (at %s DEFAULT (%s))`, c.atType, c.expression))
			printed := pgtest.Value[*string](t, pool, `SELECT (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'app.t'::regclass)`)
			require.Equal(t, c.want, readDefault(printed, c.atType), printed)
		})
	}
	require.Equal(t, stamping{stamp: elsewhere}, readDefault(nil, aware))
}

// What readDefault takes for a stamp with a rounding is within it of the clock.
func TestRounding_BoundsWhatTheServerRounds(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	seed := pgtest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for digits := range 7 {
		for range 20 {
			at := base.Add(time.Duration(random.Int64N(10_000_000)) * time.Microsecond)
			rounded := pgtest.Value[time.Time](t, pool, fmt.Sprintf(`SELECT $1::timestamptz::timestamptz(%d)`, digits), at)
			require.LessOrEqual(t, at.Sub(rounded), rounding(fmt.Sprint(digits)), "seed %d", seed)
		}
	}
	require.Zero(t, rounding(""))
}

// Two rows of one second have the same stamp if it is rounded to seconds; the
// one with the lower id may be the later one by half of that.
func TestRead_RoundedStampIsNotSkipped(t *testing.T) {
	t.Parallel()
	for _, column := range []string{
		"timestamptz(0) NOT NULL DEFAULT clock_timestamp()",
		"timestamptz NOT NULL DEFAULT clock_timestamp()::timestamptz(0)",
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint PRIMARY KEY, created_at `+column+`)`, Config{})
			await(t, "two rows got the same second", func() bool {
				exec(t, pool, `TRUNCATE app.bookings`)
				await(t, "a second begins", func() bool {
					return pgtest.Value[bool](t, pool, `SELECT extract(second FROM clock_timestamp()) % 1 < 0.2`)
				})
				exec(t, pool, `INSERT INTO app.bookings VALUES (2)`)
				later(t, pool)
				page := read(t, s, "", 10)
				if pgtest.Value[bool](t, pool, `SELECT clock_timestamp() >= created_at + interval '0.5 s' FROM app.bookings`) {
					return false // the machine is busy: by now the row may be read
				}
				require.Empty(t, page.Records)
				require.Greater(t, page.Due, time.Duration(0))
				exec(t, pool, `INSERT INTO app.bookings VALUES (1)`)
				return pgtest.Value[bool](t, pool, `SELECT count(DISTINCT created_at) = 1 FROM app.bookings`)
			})
			require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
		})
	}
}
