package table

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// rowFinding is the one thing that is wrong with the rows.
func rowFinding(t testing.TB, s *Source, at cursor.Position) Finding {
	t.Helper()
	findings, err := s.InspectRows(t.Context(), at)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	return findings[0]
}

func soundRows(t testing.TB, s *Source, at cursor.Position) {
	t.Helper()
	findings, err := s.InspectRows(t.Context(), at)
	require.NoError(t, err)
	require.Empty(t, findings)
}

func TestInspectRows_FindsNothingWrongWithGoodRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		config Config
	}{
		"created_at":  {bookingsSQL, Config{}},
		"now":         {nowTable, Config{}},
		"id":          {bookingsSQL, Config{Order: ID}},
		"partitioned": {partitionedSQL, Config{}},
		"rounded":     {bookingsSQL + `ALTER TABLE app.bookings ALTER created_at TYPE timestamptz(0)`, Config{}},
		"local":       {`SET timezone = 'UTC';` + bookingsSQL + `ALTER TABLE app.bookings ALTER created_at TYPE timestamp, ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc')`, Config{}},
		// Sessions hand ids of their blocks out when they like.
		"ids in blocks": {bookingsSQL + `ALTER SEQUENCE app.bookings_id_seq CACHE 100;
			INSERT INTO app.bookings (id, created_at) VALUES (20000, clock_timestamp() - interval '1 min'), (10000, clock_timestamp() - interval '30 s')`, Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, s := sourceOn(t, c.sql, c.config)
			soundRows(t, s, "")
			exec(t, pool, `INSERT INTO app.bookings SELECT FROM generate_series(1, 2000)`)
			soundRows(t, s, "")
		})
	}
}

func TestInspectRows_RowsOfOneTransactionThatHaveNoOrderAreNoted(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		id, stamp string
		noted     bool
	}{
		"uuid, now":    {"uuid", "now()", true},
		"text, now":    {"text", "now()", true},
		"bigint, now":  {"bigint", "now()", false},
		"uuid, clock":  {"uuid", "clock_timestamp()", false},
		"uuid, no one": {"uuid", "NULL", false},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pool := database(t, fmt.Sprintf(`CREATE SCHEMA app; CREATE TABLE app.bookings (id %s PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT %s);
				CREATE INDEX ON app.bookings (created_at, id)`, c.id, c.stamp))
			findings, err := bookings(t, pool, Config{}).InspectRows(t.Context(), "")
			require.NoError(t, err)
			if !c.noted {
				require.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			require.Equal(t, Note, findings[0].Severity)
			require.Contains(t, findings[0].Problem, "all rows that one transaction inserts into app.bookings have one \"created_at\"")
		})
	}
}

func TestInspectRows_StampsOfTheFutureAreNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (created_at) VALUES (DEFAULT), ('2199-01-01 00:00:00+00'), ('infinity')`, Config{})
	f := rowFinding(t, s, "")
	require.Equal(t, Warn, f.Severity)
	require.Contains(t, f.Problem, `a "created_at" of the future, the last one of 2199-01-01 00:00:00+00: they wait until the database's clock has passed it`)
	exec(t, pool, f.Fix)
	soundRows(t, s, "")
	later(t, pool)
	require.Equal(t, []string{"1", "2"}, ids(readAll(t, s, "", 10)))
}

func TestInspectRows_MinusInfinityIsNamed(t *testing.T) {
	t.Parallel()
	pool, s := sourceOn(t, bookingsSQL+`INSERT INTO app.bookings (created_at) VALUES ('-infinity')`, Config{})
	f := rowFinding(t, s, "")
	require.Contains(t, f.Problem, `a "created_at" of -infinity: they cannot be delivered`)
	exec(t, pool, f.Fix)
	soundRows(t, s, "")
	later(t, pool)
	require.Equal(t, []string{"1"}, ids(readAll(t, s, "", 10)))
}

// A default protects only the rows that use it.
func TestInspectRows_StampsOfAnApplicationAreNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`INSERT INTO app.bookings DEFAULT VALUES; INSERT INTO app.bookings DEFAULT VALUES;
		INSERT INTO app.bookings (created_at) VALUES (clock_timestamp() - interval '30 s')`)
	f := rowFinding(t, bookings(t, pool, Config{}), "")
	require.Equal(t, Warn, f.Severity)
	require.Regexp(t, `among the newest rows of app.bookings, "created_at" and id contradict each other 2 times: id 1 is of 2.*, and id 3 of more than a second before it`, f.Problem)
	require.Contains(t, f.Fix, `insert rows without "created_at"`)
	soundRows(t, bookings(t, pool, Config{Order: ID}), "")
}

func TestInspectRows_CursorThatIsAheadIsNamed(t *testing.T) {
	t.Parallel()
	pool := database(t, bookingsSQL+`INSERT INTO app.bookings SELECT FROM generate_series(1, 5)`)
	byTime, byID := bookings(t, pool, Config{}), bookings(t, pool, Config{Order: ID})
	ahead, err := kindAtInt.position(key{at: time.Now().Add(time.Hour).UnixMicro(), id: "7"})
	require.NoError(t, err)
	f := rowFinding(t, byTime, ahead)
	require.Equal(t, Refuse, f.Severity)
	require.Contains(t, f.Problem, "is behind the cursor (")
	exec(t, pool, `INSERT INTO app.bookings (created_at) VALUES (clock_timestamp() + interval '30 minutes')`)
	require.NotContains(t, rowFinding(t, byTime, ahead).Fix, "UPDATE", "what was delivered keeps its stamp")
	exec(t, pool, `DELETE FROM app.bookings WHERE created_at > clock_timestamp()`)

	at := last(readAll(t, byID, "", 10))
	soundRows(t, byID, at)
	exec(t, pool, `TRUNCATE app.bookings RESTART IDENTITY`)
	f = rowFinding(t, byID, at)
	require.Equal(t, Refuse, f.Severity)
	require.Contains(t, f.Problem, "the sequence of the ids stands at 0, before the cursor at 5")
	const set = "SELECT setval('app.bookings_id_seq', 5) FROM app.bookings_id_seq WHERE last_value < 5"
	require.Regexp(t, "^`seek` to the start before anything else: .*"+regexp.QuoteMeta(set)+"; then `retry`, if it is halted$", f.Fix)
	exec(t, pool, set)
	soundRows(t, byID, at)
	exec(t, pool, "SELECT setval('app.bookings_id_seq', 9)")
	exec(t, pool, set)
	require.Equal(t, 9, pgtest.Value[int](t, pool, "SELECT last_value FROM app.bookings_id_seq"), "the ids have come past the cursor by then")

	_, err = byTime.InspectRows(t.Context(), at)
	require.True(t, processor.IsPermanent(err), "a position of another source: %v", err)
}

// Doctor says how rows may come in with stamps that were made elsewhere.
func TestInspectRows_TablesThatOthersBringRowsIntoAreNoted(t *testing.T) {
	t.Parallel()
	pool := database(t, partitionedSQL+`CREATE TABLE app.heirless (LIKE app.bookings INCLUDING ALL); CREATE TABLE app.heir () INHERITS (app.heirless); CREATE INDEX ON app.heir (created_at, id)`)
	for table, problem := range map[string]string{
		"app.bookings":    "",
		"app.bookings_a":  "app.bookings_a is a partition of app.bookings: a row that an UPDATE moves into it keeps its stamp",
		"app.bookings_b":  "app.bookings_b is a partition of app.bookings",
		"app.bookings_b1": "app.bookings_b1 is a partition of app.bookings_b",
		"app.heirless":    "other tables inherit from app.heirless",
		"app.heir":        "",
	} {
		findings, err := bookings(t, pool, Config{Table: table}).InspectRows(t.Context(), "")
		require.NoError(t, err)
		if problem == "" {
			require.Empty(t, findings)
			continue
		}
		require.Len(t, findings, 1)
		require.Equal(t, Note, findings[0].Severity)
		require.Contains(t, findings[0].Problem, problem)
	}
}
