package table

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestLag_CountsWhatStandsBehindAPosition(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`
		INSERT INTO app.bookings (created_at, note) SELECT clock_timestamp() - i * interval '1 hour', i % 2 FROM generate_series(10, 1, -1) i`, Config{})
	records := readAll(t, s, "", 10)
	lag, err := s.Lag(t.Context(), records[6].Position)
	require.NoError(t, err)
	require.EqualValues(t, 3, lag.Records)
	require.InDelta(t, 3*time.Hour, lag.Age, float64(time.Minute))

	lag, err = s.Lag(t.Context(), last(records))
	require.NoError(t, err)
	require.Equal(t, Lag{Aged: true}, lag)

	lag, err = bookings(t, pool, Config{Where: "note = '1'"}).Lag(t.Context(), "")
	require.NoError(t, err)
	require.EqualValues(t, 5, lag.Records)
	require.InDelta(t, 9*time.Hour, lag.Age, float64(time.Minute))

	byID := bookings(t, pool, Config{Order: ID})
	lag, err = byID.Lag(t.Context(), "")
	require.NoError(t, err)
	require.EqualValues(t, 10, lag.Records)
	require.InDelta(t, 10*time.Hour, lag.Age, float64(time.Minute))
	lag, err = byID.Lag(t.Context(), "int:00000000000000000008")
	require.NoError(t, err)
	require.EqualValues(t, 2, lag.Records)
	require.InDelta(t, 2*time.Hour, lag.Age, float64(time.Minute))
}

// Order id reads the time of creation where there is one, and needs none.
func TestRead_OrderIDKnowsCreatedAt(t *testing.T) {
	t.Parallel()
	for alter, known := range map[string]bool{
		"":                                      true,
		"DROP COLUMN created_at":                false,
		"RENAME COLUMN created_at TO made":      false,
		"ALTER COLUMN created_at TYPE date":     false,
		"ALTER COLUMN created_at DROP NOT NULL": true,
	} {
		t.Run(alter, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL)
			if alter != "" {
				exec(t, pool, "ALTER TABLE app.bookings "+alter)
			}
			exec(t, pool, "INSERT INTO app.bookings (note) VALUES ('a')")
			s := bookings(t, pool, Config{Order: ID})
			records := readAll(t, s, "", 10)
			require.Len(t, records, 1)
			require.Equal(t, known, !records[0].CreatedAt.IsZero())
			lag, err := s.Lag(t.Context(), "")
			require.NoError(t, err)
			require.EqualValues(t, 1, lag.Records)
			require.Equal(t, known, lag.Aged)
			findings, err := s.Inspect(t.Context())
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}

func TestLag_HoldsAnyTime(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`INSERT INTO app.bookings (created_at) VALUES ('-infinity'), ('4000-01-01 BC'), ('infinity'), ('200000-01-01')`)
	lag, err := bookings(t, pool, Config{}).Lag(t.Context(), "")
	require.NoError(t, err)
	require.EqualValues(t, 3, lag.Records)
	require.Greater(t, lag.Age, 290*365*24*time.Hour)
}

// Where the order is not by time, or the stamp is an application's, a transaction that began later may insert before what waits.
func TestLag_KnowsWhatBeganTooLateToInsertBeforeIt(t *testing.T) {
	t.Parallel()
	const at = `2020-01-01 00:00:00+00`
	for name, c := range map[string]struct {
		sql    string
		config Config
		want   time.Duration // after the stamp; 0 = not known
	}{
		"clock_timestamp": {bookingsSQL, Config{Latency: time.Minute}, time.Minute},
		"now":             {nowTable, Config{}, defaultTxLatency},
		"rounded":         {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at TYPE timestamptz(0);`, Config{Latency: time.Minute}, time.Minute + time.Second},
		"id":              {bookingsSQL, Config{Order: ID}, 0},
		"no default":      {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at DROP DEFAULT;`, Config{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, c.sql, c.config)
			lag, err := s.Lag(t.Context(), "")
			require.NoError(t, err)
			require.Zero(t, lag.Begun, "nothing waits")
			exec(t, pool, `INSERT INTO app.bookings (created_at) VALUES ($1)`, at)
			lag, err = s.Lag(t.Context(), "")
			require.NoError(t, err)
			if c.want == 0 {
				require.Zero(t, lag.Begun)
				return
			}
			require.Equal(t, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.want), lag.Begun)
		})
	}
}

func TestWriters_NamesTheSessionsThatHoldTheFence(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{"clock_timestamp": bookingsSQL, "now": nowTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, sql, Config{})
			writers, err := s.Writers(t.Context())
			require.NoError(t, err)
			require.Empty(t, writers)

			gid := pool.Config().ConnConfig.Database
			exec(t, pool, `BEGIN; SAVEPOINT a; INSERT INTO app.bookings DEFAULT VALUES; PREPARE TRANSACTION `+literal(gid))
			w := begun(t, namedPool(t, pool, "the importer"), `INSERT INTO app.bookings DEFAULT VALUES; INSERT INTO app.bookings DEFAULT VALUES`)
			writers, err = s.Writers(t.Context())
			require.NoError(t, err)
			require.Len(t, writers, 2)
			require.Equal(t, Writer{GID: gid, Transaction: writers[0].Transaction, User: "postgres", Since: writers[0].Since}, writers[0])
			require.Equal(t, Writer{PID: int(w.pid), Transaction: writers[1].Transaction, Application: "the importer", User: "postgres", Since: writers[1].Since, QueryStart: writers[1].QueryStart, State: "idle in transaction"}, writers[1])
			for _, w := range writers {
				require.WithinDuration(t, pgtest.Value[time.Time](t, pool, `SELECT clock_timestamp()`), w.Since, time.Minute)
			}

			exec(t, pool, `ROLLBACK PREPARED `+literal(gid))
			w.do(`COMMIT`)
			writers, err = s.Writers(t.Context())
			require.NoError(t, err)
			require.Empty(t, writers)
		})
	}
}

func TestWriters_OfPartitionsAndOfTheTablesAboveAreNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, partitionedSQL)
	w := begun(t, pool, `INSERT INTO app.bookings_b1 (id, region) VALUES (1, 'b')`)
	writers, err := bookings(t, pool, Config{}).Writers(t.Context())
	require.NoError(t, err)
	require.Len(t, writers, 1)
	w.do(`COMMIT; BEGIN; INSERT INTO app.bookings DEFAULT VALUES`)
	writers, err = bookings(t, pool, Config{Table: "app.bookings_b1"}).Writers(t.Context())
	require.NoError(t, err)
	require.Len(t, writers, 1)
}

// When the transaction began is hidden from other roles. Its virtual id tells it from the next one of its session.
func TestWriters_OfOtherRolesAreNamedAsFarAsTheyMayBe(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	s := bookings(t, readerPool(t, pool, "another"), Config{})
	w := begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	writers, err := s.Writers(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, writers)
	require.NotEmpty(t, writers[0].TimesHiddenFrom)
	require.Equal(t, []Writer{{PID: int(w.pid), Transaction: writers[0].Transaction, User: "postgres", Application: t.Name(), TimesHiddenFrom: writers[0].TimesHiddenFrom}}, writers)
	w.do(`COMMIT; BEGIN; INSERT INTO app.bookings DEFAULT VALUES`)
	next, err := s.Writers(t.Context())
	require.NoError(t, err)
	require.Len(t, next, 1)
	require.NotEqual(t, writers[0].Transaction, next[0].Transaction)
}

func namedPool(t testing.TB, admin *pgxpool.Pool, application string) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, admin.Config().ConnString(), pgtest.PoolConfig{ApplicationName: application})
}

func TestEnd_PassesWhatWasStampedAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		config Config
	}{
		"created_at":     {bookingsSQL, Config{}},
		"now":            {nowTable, Config{}},
		"id":             {bookingsSQL, Config{Order: ID}},
		"integer id":     {bookingsSQL + `ALTER TABLE app.bookings ALTER id TYPE integer`, Config{}},
		"integer, by id": {bookingsSQL + `ALTER TABLE app.bookings ALTER id TYPE integer`, Config{Order: ID}},
		"uuid":           {bookingsSQL + `ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id TYPE uuid USING gen_random_uuid(), ALTER id SET DEFAULT gen_random_uuid()`, Config{}},
		"text":           {bookingsSQL + `ALTER TABLE app.bookings ALTER id DROP IDENTITY; ALTER TABLE app.bookings ALTER id TYPE text, ALTER id SET DEFAULT gen_random_uuid()`, Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, c.sql)
			c.config.Latency = time.Millisecond
			s := bookings(t, pool, c.config)
			fromNothing := s.mustEnd(t)
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('before')`)
			end := s.mustEnd(t)
			require.Less(t, fromNothing, end)
			exec(t, pool, `INSERT INTO app.bookings (note) VALUES ('after')`)
			require.Equal(t, []string{"after"}, notes(t, readAll(t, s, end, 10)))
			require.Equal(t, []string{"before", "after"}, notes(t, readAll(t, s, fromNothing, 10)))
		})
	}
}

// A stamp made after the end may be rounded to before it.
func TestEnd_OfRoundedStampsPassesNothingByThatComesLater(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`ALTER TABLE app.bookings ALTER created_at TYPE timestamptz(0)`, Config{})
	for range 3 {
		await(t, "a second begins", func() bool {
			return pgtest.Value[bool](t, pool, `SELECT extract(second FROM clock_timestamp()) % 1 < 0.1`)
		})
		end := s.mustEnd(t)
		exec(t, pool, `TRUNCATE app.bookings; INSERT INTO app.bookings (note) VALUES ('after')`)
		require.Equal(t, []string{"after"}, notes(t, readAll(t, s, end, 10)))
	}
}
