package table

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// zones are those of producers' sessions: pgjdbc sets that of the JVM.
var zones = []string{"UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Kiritimati"}

const localSQL = bookingsSQL + `ALTER TABLE app.bookings ALTER created_at DROP DEFAULT, ALTER created_at TYPE timestamp;`

// Sessions stamp in time zones of their own, however that of the reader is.
var zonedDefaults = map[string]string{
	"clock_timestamp()":             localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT clock_timestamp()`,
	"now()":                         localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT now()`,
	"a cast":                        localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT now()::timestamp`,
	"CURRENT_TIMESTAMP":             localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT CURRENT_TIMESTAMP`,
	"transaction_timestamp()":       localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT transaction_timestamp()`,
	"LOCALTIMESTAMP":                localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT LOCALTIMESTAMP`,
	"Berlin":                        localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'Europe/Berlin')`,
	"UTC twice":                     localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT (now()::timestamp AT TIME ZONE 'utc')`,
	"unknown":                       localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT date_trunc('second', now())`,
	"timestamptz of LOCALTIMESTAMP": bookingsSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT LOCALTIMESTAMP`,
	"timestamptz of UTC":            bookingsSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT (now() AT TIME ZONE 'utc')`,
	"a domain": bookingsSQL + `CREATE DOMAIN app.stamp AS timestamp DEFAULT now();
		ALTER TABLE app.bookings ALTER created_at DROP DEFAULT, ALTER created_at TYPE app.stamp`,
	"a view": localSQL + `ALTER TABLE app.bookings ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc');
		CREATE VIEW app.v AS SELECT * FROM app.bookings; ALTER VIEW app.v ALTER created_at SET DEFAULT now()`,
	"a partition key": `CREATE SCHEMA app; CREATE TABLE app.bookings (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamp NOT NULL DEFAULT now(), note text,
		PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at); CREATE TABLE app.bookings_all PARTITION OF app.bookings DEFAULT`,
}

func TestRead_StampsOfTheSessionsTimeZoneAreRefused(t *testing.T) {
	t.Parallel()
	for name, sql := range zonedDefaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, sql)
			s := bookings(t, inTimeZone(t, pool, "UTC"), Config{Latency: time.Millisecond})
			const problem = "of the session that inserts: the fence is in UTC, and a record that is stamped hours before it would be passed over"
			require.Equal(t, Refuse, found(t, s, problem).Severity)
			for _, zone := range zones {
				found(t, bookings(t, inTimeZone(t, pool, zone), Config{}), problem)
			}
			fixed(t, pool, s, problem)
			s = bookings(t, inTimeZone(t, pool, "Asia/Tokyo"), Config{})
			sound(t, s)
			delivers(t, s, newSession(t, pool))
		})
	}
}

// delivers has sessions of other time zones insert, the earlier one of which commits last.
func delivers(t *testing.T, s *Source, late *session) {
	t.Helper()
	require.Empty(t, readAll(t, s, "", 10))
	early := newSession(t, s.pool)
	early.do(`SET TimeZone = 'Pacific/Kiritimati'`)
	late.do(`SET TimeZone = 'America/New_York'; BEGIN; INSERT INTO app.bookings (note) VALUES ('late')`)
	early.do(`INSERT INTO app.bookings (note) VALUES ('early')`)
	holdsBack(t, s, "")
	late.do(`COMMIT`)
	require.Equal(t, []string{"late", "early"}, notes(t, readAll(t, s, "", 10)))
}

func TestRead_TriggersThatStampInTheSessionsTimeZoneAreRefused(t *testing.T) {
	t.Parallel()
	for value, refused := range map[string]bool{
		"now()":                        true,
		"clock_timestamp()::timestamp": true,
		"coalesce(NEW.created_at, localtimestamp)": true,
		"clock_timestamp() AT TIME ZONE 'utc'":     false,
		"timezone('utc', clock_timestamp())":       false,
		"NEW.created_at":                           false,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			pool := database(t, localSQL+fmt.Sprintf(`ALTER TABLE app.bookings ALTER created_at SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc');
				CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.created_at := %s; RETURN NEW; END$$;
				CREATE TRIGGER stamp BEFORE INSERT ON app.bookings FOR EACH ROW EXECUTE FUNCTION app.f()`, value))
			findings, err := bookings(t, pool, Config{}).Inspect(t.Context())
			require.NoError(t, err)
			refusals := 0
			for _, f := range findings {
				if f.Severity == Refuse {
					require.Contains(t, f.Problem, "trigger stamp of app.bookings stamps rows with "+value)
					refusals++
				}
			}
			require.Equal(t, refused, refusals == 1, findings)
		})
	}
}

func TestInspect_FixesOfATimestampWithoutTimeZone(t *testing.T) {
	t.Parallel()
	const problem = "is a timestamp without time zone"
	t.Run("a table", func(t *testing.T) {
		require.Equal(t, `ALTER TABLE "app"."bookings" ALTER COLUMN "created_at" SET DEFAULT (clock_timestamp() AT TIME ZONE 'utc');`+"\n-- that is for stamps in UTC. If those so far are in another zone:\n-- "+
			`ALTER TABLE "app"."bookings" ALTER COLUMN "created_at" TYPE timestamptz USING "created_at" AT TIME ZONE 'the zone of the stamps', `+
			`ALTER COLUMN "created_at" SET DEFAULT clock_timestamp();`+"\n-- that locks the table while it is rewritten\n-- or set source.order: id",
			found(t, bookings(t, database(t, zonedDefaults["now()"]), Config{}), problem).Fix)
	})
	t.Run("a partition key", func(t *testing.T) {
		pool := database(t, zonedDefaults["a partition key"])
		fix := found(t, bookings(t, pool, Config{}), problem).Fix
		_, fix, _ = strings.Cut(fix, "zone:\n-- ")
		const added = `ALTER TABLE app.bookings ADD COLUMN "stamped_at" timestamptz NOT NULL DEFAULT now(), ALTER COLUMN "stamped_at" SET DEFAULT clock_timestamp()`
		require.Equal(t, "the type of a partition key cannot be changed, so order by a column of its own: "+added+
			", named in source.columns.created_at; or make a new table with a timestamptz\n-- or set source.order: id", fix)
		exec(t, pool, added)
		_, _, err := bookings(t, pool, Config{Columns: Columns{CreatedAt: "stamped_at"}}).inspect(t.Context())
		require.NoError(t, err)
	})
	t.Run("with partitions, once", func(t *testing.T) {
		findings, err := bookings(t, database(t, zonedDefaults["a partition key"]), Config{}).Inspect(t.Context())
		require.NoError(t, err)
		count := 0
		for _, f := range findings {
			if strings.Contains(f.Problem, problem) {
				count++
			}
		}
		require.Equal(t, 1, count, findings)
	})
}

// Of a column that applications stamp, only the database's own zone hints at theirs.
func TestInspect_TimestampOfApplications(t *testing.T) {
	t.Parallel()
	pool := database(t, localSQL)
	elsewhere := bookings(t, inTimeZone(t, pool, "Europe/Berlin"), Config{})
	require.Equal(t, Refuse, found(t, elsewhere, "the database runs in Europe/Berlin, not in UTC: its values jump back when clocks are changed").Severity)
	byID := bookings(t, elsewhere.pool, Config{Order: ID, Columns: Columns{CreatedAt: "created_at"}})
	require.Equal(t, Warn, found(t, byID, "ages and --to-time may be hours off").Severity)
	utc := bookings(t, inTimeZone(t, pool, "UTC"), Config{})
	require.Equal(t, Warn, found(t, utc, "has no default: a stamp of the application's clock").Severity)
	fixed(t, pool, elsewhere, "the database runs in Europe/Berlin")
	sound(t, elsewhere)
}

// A default that is taken for the database's clock is that clock, for sessions of all
// time zones: however casts, conversions and columns are put together.
func TestReadDefault_TortureOfTimeZones(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(pgtest.Seed(t), 0))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	pool := database(t, `CREATE SCHEMA app`)
	conn := newSession(t, pool)
	accepted, refused := 0, 0
	for range 250 {
		expression := pick([]string{"now()", "clock_timestamp()", "CURRENT_TIMESTAMP(3)", "statement_timestamp()", "LOCALTIMESTAMP", "'now'::text::timestamptz", "'now'::text::timestamp"})
		for range random.IntN(4) {
			expression = strings.ReplaceAll(pick([]string{"(?)", "(?)::timestamp", "(?)::timestamptz(3)", "(?)::timestamp(2)", "((?) AT TIME ZONE 'utc')",
				"timezone('UTC', ?)", "((?) AT TIME ZONE 'Europe/Berlin')"}), "?", expression)
		}
		atType := pick([]string{"timestamp", "timestamptz"})
		conn.do(fmt.Sprintf(`SET TimeZone = 'UTC'; DROP TABLE IF EXISTS app.t; CREATE TABLE app.t (id int, at %s DEFAULT (%s))`, atType, expression))
		printed := pgtest.Value[*string](t, conn, `SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'app.t'::regclass`)
		if got := readDefault(printed, atType); got.stamp == stampElsewhere || got.zoned {
			refused++
			continue
		}
		accepted++
		for _, zone := range zones {
			conn.do(fmt.Sprintf(`SET TimeZone = '%s'; INSERT INTO app.t (id) VALUES (1)`, zone))
		}
		conn.do(`SET TimeZone = 'UTC'`)
		require.True(t, pgtest.Value[bool](t, conn, `SELECT max(abs(extract(epoch FROM at - clock_timestamp()::timestamp))) < 60 FROM app.t`), "%s %s", atType, expression)
	}
	require.Greater(t, min(accepted, refused), 20)
}
