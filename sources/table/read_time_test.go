package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestRead_RowOfTheFutureNeitherBlocksNorPullsTheCursor(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"'2200-01-01'", "'20000-01-01'", "'294000-01-01'", "'294276-12-31 23:59:59'", "clock_timestamp() + interval '1 hour'"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (id, created_at) VALUES (1, `+at+`)`, Config{})
			page := read(t, s, "", 10)
			require.Empty(t, page.Records)
			require.True(t, page.Waiting)
			require.Greater(t, page.Due, time.Minute)
			require.LessOrEqual(t, page.Due, maxDue)

			exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
			records := readSome(t, s, "", 1)
			exec(t, pool, `INSERT INTO app.bookings (id) VALUES (3)`)
			require.Equal(t, []string{"3"}, ids(readSome(t, s, last(records), 1)))

			lag, err := s.Lag(t.Context(), "")
			require.NoError(t, err)
			require.EqualValues(t, 3, lag.Records)
			findings, err := s.InspectRows(t.Context(), last(records))
			require.NoError(t, err)
			require.NotEmpty(t, findings)
			require.Contains(t, findings[0].Problem, "rows of app.bookings have a \"created_at\" of the future")
		})
	}
}

func TestRead_DueIsWhenTheRecordMayBeRead(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL, Config{Latency: 10 * time.Second})
	inserted := time.Now()
	exec(t, pool, `INSERT INTO app.bookings (created_at) VALUES (clock_timestamp() + interval '10 s')`)
	page := read(t, s, "", 10)
	require.True(t, page.Waiting)
	require.LessOrEqual(t, page.Due, 20*time.Second)
	require.GreaterOrEqual(t, page.Due, 20*time.Second-time.Since(inserted))

	begun(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	page = read(t, s, "", 10)
	require.True(t, page.Waiting)
	require.Zero(t, page.Due, "it is not known when a writer ends")
}

func TestRead_InfinityIsNeverReadAndIsNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (created_at) VALUES ('infinity'), (clock_timestamp())`, Config{})
	records := readAll(t, s, "", 10)
	require.Equal(t, []string{"2"}, ids(records))
	fixed(t, pool, s, `rows of app.bookings have a "created_at" of infinity: they are never delivered`)
	require.Equal(t, []string{"1"}, ids(readAll(t, s, last(records), 10)))
}

// These stand before every other, so that nothing can be read before them.
func TestRead_TimeThatNoPositionHoldsIsNamed(t *testing.T) {
	t.Parallel()
	for at, reason := range map[string]string{
		"-infinity":              "its created_at is -infinity; give it a time",
		"0044-03-15 BC":          "its created_at lies outside the years 1 to 9999",
		"0001-12-31 23:59:59 BC": "its created_at lies outside the years 1 to 9999",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			pool := database(t, bookingsSQL)
			exec(t, pool, `INSERT INTO app.bookings (created_at) VALUES ($1::text::timestamptz), (clock_timestamp())`, at)
			later(t, pool)
			s := bookings(t, pool, Config{})
			_, err := s.Read(t.Context(), "", 10)
			require.ErrorContains(t, err, "read app.bookings: record 1 cannot be delivered: "+reason)
			require.True(t, processor.IsPermanent(err))
			lag, err := s.Lag(t.Context(), "")
			require.NoError(t, err)
			require.EqualValues(t, 2, lag.Records)

			exec(t, pool, `UPDATE app.bookings SET created_at = '0001-01-01 00:00:00+00' WHERE id = 1`)
			require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
		})
	}
}

func TestRead_ClockBehindTheCursorIsNamed(t *testing.T) {
	t.Parallel()
	_, s := sourceOn(t, bookingsSQL, Config{})
	ahead, err := kindAtInt.position(key{at: time.Now().Add(time.Hour).UnixMicro(), id: "7"})
	require.NoError(t, err)
	_, err = s.Read(t.Context(), ahead, 10)
	require.ErrorContains(t, err, "the database's clock (")
	require.ErrorContains(t, err, ") is behind the cursor (")
	require.ErrorContains(t, err, "set the clock right, or wait until it has passed the cursor")
	require.True(t, processor.IsPermanent(err))
}

// What is inserted after TRUNCATE … RESTART IDENTITY would be below the cursor.
func TestRead_SequenceThatStartedAnewIsNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 5)`, Config{Order: ID})
	records := readAll(t, s, "", 10)
	require.Len(t, records, 5)
	for _, reset := range []string{
		`TRUNCATE app.bookings RESTART IDENTITY`,
		`SELECT setval('app.bookings_id_seq', 2)`,
		`INSERT INTO app.bookings (note) VALUES ('the third')`,
	} {
		exec(t, pool, reset)
		_, err := s.Read(t.Context(), last(records), 10)
		require.ErrorContains(t, err, "before the cursor at 5: it was reset (TRUNCATE … RESTART IDENTITY, setval, a restore, or a crash of the server if it is unlogged)", reset)
		require.True(t, processor.IsPermanent(err))
	}
	exec(t, pool, `SELECT setval('app.bookings_id_seq', 5); INSERT INTO app.bookings DEFAULT VALUES`)
	require.Equal(t, []string{"6"}, ids(readAll(t, s, last(records), 10)))
}

// A sequence that is set past the cursor was not reset, whether or not it has made
// an id since.
func TestRead_SequenceThatStartsPastTheCursorIsReadOn(t *testing.T) {
	t.Parallel()
	for _, restart := range []string{
		`ALTER SEQUENCE app.bookings_id_seq RESTART WITH 100`,
		`SELECT setval('app.bookings_id_seq', 100, false)`,
		`ALTER TABLE app.bookings ALTER id RESTART WITH 100`,
	} {
		t.Run(restart, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 5)`, Config{Order: ID})
			records := readAll(t, s, "", 10)
			exec(t, pool, restart)
			sound(t, s)
			require.Empty(t, readAll(t, s, last(records), 10))
			require.Less(t, last(records), s.mustEnd(t))
			exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
			require.Equal(t, []string{"100"}, ids(readAll(t, s, last(records), 10)))
		})
	}
}

func TestRead_PositionOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL)
	for position, s := range map[cursor.Position]*Source{
		kindInt.example():   bookings(t, pool, Config{}),
		kindAtInt.example(): bookings(t, pool, Config{Order: ID}),
		"nonsense":          bookings(t, pool, Config{}),
	} {
		_, err := s.Read(t.Context(), position, 10)
		require.ErrorContains(t, err, "does not belong to this source")
		require.True(t, processor.IsPermanent(err))
		_, err = s.Lag(t.Context(), position)
		require.ErrorContains(t, err, "does not belong to this source")
		require.True(t, processor.IsPermanent(err))
	}
}

// In UTC a timestamp without time zone is as good as one with.
func TestRead_TimestampInUTC(t *testing.T) {
	t.Parallel()
	pool := inTimeZone(t, database(t, bookingsSQL+`ALTER TABLE app.bookings
		ALTER created_at TYPE timestamp USING created_at AT TIME ZONE 'utc',
		ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc')`), "UTC")
	s := bookings(t, pool, Config{})
	sound(t, s)

	require.Empty(t, readAll(t, s, "", 10))
	w := newSession(t, pool)
	w.do(`SET TimeZone = 'America/New_York'; BEGIN; INSERT INTO app.bookings (id) VALUES (1)`)
	before := pgtest.Value[time.Time](t, pool, `SELECT clock_timestamp()`)
	exec(t, pool, `INSERT INTO app.bookings (id) VALUES (2)`)
	holdsBack(t, s, "")
	w.do(`COMMIT`)
	records := readAll(t, s, "", 1)
	require.Equal(t, []string{"1", "2"}, ids(records))
	require.WithinDuration(t, before, records[1].CreatedAt, 10*time.Second)
	lag, err := s.Lag(t.Context(), "")
	require.NoError(t, err)
	require.Less(t, lag.Age, time.Minute)
}

// The clock is held against a position while nothing is read. A step that does not reach behind it has the next read wait for
// transactions that may have stamped rows before the last read's mark.
func TestClock_IsHeldAgainstAPositionBetweenTwoReads(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 2)`, Config{})
	at := last(readAll(t, s, "", 10))
	require.NoError(t, s.Clock(t.Context(), at))

	k, err := kindAtInt.parse(at)
	require.NoError(t, err)
	var clock *processor.ClockError
	ahead, err := kindAtInt.position(key{at: time.Now().Add(time.Hour).UnixMicro(), id: "7"})
	require.NoError(t, err)
	require.ErrorAs(t, s.Clock(t.Context(), ahead), &clock)
	from, err := kindAtInt.parse(clock.From)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.UnixMicro(from.at), 30*time.Second, "no earlier than when the clock was seen to be right")
	require.Less(t, k.at-from.at, time.Minute.Microseconds())

	before := time.Now().Add(time.Second)
	s.fence.last.mark = before.UnixMicro()
	tx := pgtest.Begin(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	require.NoError(t, s.Clock(t.Context(), at))
	exec(t, pool, `INSERT INTO app.bookings DEFAULT VALUES`)
	time.Sleep(time.Until(before) + 100*time.Millisecond) // the clock passes what it had been
	page, err := s.Read(t.Context(), at, 10)
	require.NoError(t, err)
	require.Empty(t, page.Records, "the transaction may have stamped before the one that is committed")
	require.NoError(t, tx.Commit(t.Context()))
	require.Len(t, readAll(t, s, at, 10), 2)
}

// TestClock_ThatStaysBehindKeepsTheTimeOfItsStep: a process that is halted over its clock has it held against a position before the
// rows in question. A retry that came too early named a later one, and what the clock had stamped before that was lost.
func TestClock_ThatStaysBehindKeepsTheTimeOfItsStep(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 2)`)
	ahead, err := kindAtInt.position(key{at: time.Now().Add(time.Hour).UnixMicro(), id: "7"})
	require.NoError(t, err)
	from := func(s *Source) cursor.Position {
		var clock *processor.ClockError
		require.ErrorAs(t, s.Clock(t.Context(), ahead), &clock)
		return clock.From
	}
	s := bookings(t, pool, Config{})
	at := last(readAll(t, s, "", 10))
	require.NoError(t, s.Clock(t.Context(), at))
	s.clock.seen = s.clock.seen.Add(-time.Minute)
	s.clock.mark += time.Hour.Microseconds() // it has stepped back since
	named := from(s)
	require.NoError(t, s.Clock(t.Context(), at))
	k, err := kindAtInt.parse(from(s))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-time.Minute), time.UnixMicro(k.at), 30*time.Second)
	require.Less(t, named, at)

	another := bookings(t, pool, Config{}) // of a worker that came when the process was halted
	require.NoError(t, another.Clock(t.Context(), at))
	require.Empty(t, from(another), "when the clock went back is not known")
}

// TestRead_ASequenceThatIsNoLongerTheTablesIsNotHeldAgainstThePosition: a worker that knew the table with its former sequence halted a
// process that another one delivers by the new one.
func TestRead_ASequenceThatIsNoLongerTheTablesIsNotHeldAgainstThePosition(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`CREATE SEQUENCE app.lower; CREATE SEQUENCE app.higher START 5001;
		ALTER TABLE app.bookings ALTER id DROP IDENTITY IF EXISTS; ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.lower');
		INSERT INTO app.bookings SELECT FROM generate_series(1, 5)`, Config{Order: ID})
	records := readAll(t, s, "", 10)
	exec(t, pool, `ALTER TABLE app.bookings ALTER id SET DEFAULT nextval('app.higher'); INSERT INTO app.bookings DEFAULT VALUES`)
	records = readAll(t, bookings(t, pool, Config{Order: ID}), last(records), 10)
	require.Equal(t, []string{"5001"}, ids(records))
	require.Empty(t, readAll(t, s, last(records), 10))
}
