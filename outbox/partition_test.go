package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgshape"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

func TestCreate_MakesTheTableOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]outbox.Config{"json": {}, "raw": {Raw: true}, "partitioned": {Partitioned: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Database(t)
			o, err := outbox.New(c)
			require.NoError(t, err)
			var makers sync.WaitGroup
			made := make([]bool, 4)
			for i := range made {
				makers.Go(func() {
					var err error
					made[i], err = o.Create(t.Context(), pool)
					require.NoError(t, err)
				})
			}
			makers.Wait()
			count := map[bool]int{}
			for _, m := range made {
				count[m]++
			}
			require.Equal(t, map[bool]int{true: 1, false: 3}, count)
			if c.Partitioned {
				_, err = o.MakePartitions(t.Context(), pool, 1)
				require.NoError(t, err)
			}
			require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: 1}) }))
		})
	}
}

func TestCreate_RefusesATableOfAnotherShape(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"CREATE VIEW public.outbox AS SELECT 1": "there is a view of that name, not a table",
		"CREATE SEQUENCE public.outbox":         "there is something else of that name, not a table",
		"CREATE TABLE public.outbox (id uuid, created_at timestamptz, aggregate_type text, aggregate_id text, key text, type text, payload bytea)": "there is a table of that name without id bigint, payload jsonb, headers jsonb",
	} {
		pool := pgtest.Database(t)
		pgtest.Exec(t, pool, sql)
		o, err := outbox.New(outbox.Config{})
		require.NoError(t, err)
		made, err := o.Create(t.Context(), pool)
		require.ErrorIs(t, err, outbox.ErrOtherTable)
		require.ErrorContains(t, err, `create the outbox "public"."outbox": it is not an outbox of this shape: `+want)
		require.False(t, made)
		pgtest.Exec(t, pool, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	}
}

// The owner of the table can run code with the rights of the producers, and of the role that makes partitions.
func TestCreate_RefusesATableOfAnotherRole(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{Partitioned: true})
	stranger := pgtest.Role(t, pool, "od_", "")
	pgtest.Exec(t, pool, "ALTER TABLE public.outbox OWNER TO "+stranger)
	_, err := o.Create(t.Context(), pool)
	require.ErrorIs(t, err, pgshape.ErrStranger)
	require.ErrorContains(t, err, "it belongs to role \""+stranger+"\"")
	days, err := o.MakePartitions(t.Context(), pool, 1)
	require.ErrorIs(t, err, pgshape.ErrStranger)
	require.Empty(t, days)

	pgtest.Exec(t, pool, "GRANT USAGE, CREATE ON SCHEMA public TO "+stranger)
	theirs := pgtest.Pool(t, pgtest.With(t, pool.Config().ConnString(), "role", stranger), pgtest.PoolConfig{})
	_, err = o.Create(t.Context(), theirs)
	require.NoError(t, err, "its owner may")
	_, err = o.MakePartitions(t.Context(), theirs, 1)
	require.NoError(t, err)
}

func TestCreate_NeedsASchemaThatIsThere(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	for name, want := range map[string]string{"outbox": "give a schema and a name", "nowhere": `schema "nowhere" does not exist`} {
		table := pgx.Identifier{name}
		if name == "nowhere" {
			table = pgx.Identifier{name, "outbox"}
		}
		o, err := outbox.New(outbox.Config{Table: table})
		require.NoError(t, err)
		_, err = o.Create(t.Context(), pool)
		require.ErrorContains(t, err, want)
	}
}

// daily is a database with an outbox that has a partition for each day, and none yet.
func daily(t testing.TB) (*outbox.Outbox, *pgxpool.Pool) {
	t.Helper()
	o, err := outbox.New(outbox.Config{Partitioned: true})
	require.NoError(t, err)
	pool := pgtest.Database(t)
	_, err = o.Create(t.Context(), pool)
	require.NoError(t, err)
	return o, pool
}

const bookingsSQL = "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY, seat text)"

// book writes a booking and its record in one transaction.
func book(ctx context.Context, o *outbox.Outbox, pool *pgxpool.Pool, seat string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO public.bookings (seat) VALUES ($1)", seat); err != nil {
			return err
		}
		return o.Add(ctx, tx, outbox.Record{Type: "booking.created", Payload: seat})
	})
}

// The message is PostgreSQL's. The booking fails with the record, so it can be made again, and then both are there.
func TestAdd_WithoutAPartitionFailsTheWholeTransactionAndLosesNothing(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	pgtest.Exec(t, pool, bookingsSQL)
	err := book(t.Context(), o, pool, "12A")
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, `no partition of relation "outbox" found for row`, refused.Message)
	require.Regexp(t, `^Partition key of the failing row contains \(created_at\) = \(\d{4}-\d\d-\d\d .*\)\.$`, refused.Detail)
	require.ErrorContains(t, err, refused.Message)
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.bookings"))

	_, err = o.MakePartitions(t.Context(), pool, 1)
	require.NoError(t, err)
	require.NoError(t, book(t.Context(), o, pool, "12A"))
	require.Equal(t, "12A", pgtest.Value[string](t, pool, "SELECT string_agg(seat, '') FROM public.bookings"))
	require.Equal(t, `"12A"`, pgtest.Value[string](t, pool, "SELECT string_agg(payload::text, '') FROM public.outbox"))
}

// names are the names of the partitions of some days around today, as the database's clock has it.
func days(t testing.TB, pool *pgxpool.Pool, first, last int) []string {
	t.Helper()
	return pgtest.Value[[]string](t, pool, `SELECT array_agg('"public"."outbox_' || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + n, 'YYYY_MM_DD') || '"' ORDER BY n) FROM generate_series($1::int, $2::int) n`, first, last)
}

func TestMakePartitions_MakesWhatIsMissingOfTodayAndTheDaysAhead(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	made, err := o.MakePartitions(t.Context(), pool, 2)
	require.NoError(t, err)
	require.Len(t, made, 3)
	require.Subset(t, days(t, pool, -1, 2), made, "it may be another day by now")

	want := days(t, pool, 0, 4)
	pgtest.Exec(t, pool, "DROP TABLE "+made[1])
	var makers sync.WaitGroup
	all := make([][]string, 3)
	for i := range all {
		makers.Go(func() {
			var err error
			all[i], err = o.MakePartitions(t.Context(), pool, 4)
			require.NoError(t, err)
		})
	}
	makers.Wait()
	var again []string
	for _, some := range all {
		again = append(again, some...)
	}
	require.Subset(t, append(again, made...), want, "none is missing")
	require.NotContains(t, again, made[2])
	require.Contains(t, again, made[1])
	require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(DISTINCT c.relowner) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"))
	for _, tail := range []string{"payload", "transaction_id", "created_at"} {
		require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(DISTINCT (attname, atttypid, attnotnull, atthasdef)) FROM pg_attribute WHERE attname = $1 AND (attrelid IN (SELECT inhrelid FROM pg_inherits) OR attrelid = 'public.outbox'::regclass) AND attrelid NOT IN (SELECT oid FROM pg_class WHERE relkind IN ('i', 'I'))", tail), tail)
	}
}

func TestMakePartitions_KeepsItsHandsOffADayThatAnotherPartitionCovers(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.old PARTITION OF public.outbox FOR VALUES FROM (MINVALUE) TO ('2000-01-01'); CREATE TABLE public.now PARTITION OF public.outbox FOR VALUES FROM ('2000-01-01') TO (MAXVALUE)")
	made, err := o.MakePartitions(t.Context(), pool, 30)
	require.NoError(t, err)
	require.Empty(t, made)
}

// An INSERT that is not committed holds nothing up, and a producer does not wait.
func TestMakePartitions_NeitherWaitsForProducersNorHoldsThemUp(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	pgtest.Exec(t, pool, bookingsSQL)
	_, err := o.MakePartitions(t.Context(), pool, 1)
	require.NoError(t, err)
	open := pgtest.Begin(t, pool, "INSERT INTO public.outbox (type, payload) VALUES ('a', '1')")
	made, err := o.MakePartitions(t.Context(), pool, 2)
	require.NoError(t, err)
	require.NotEmpty(t, made)

	maker := pgtest.Begin(t, pool, "LOCK TABLE ONLY public.outbox IN SHARE UPDATE EXCLUSIVE MODE; CREATE TABLE public.far (LIKE public.outbox INCLUDING ALL EXCLUDING IDENTITY); ALTER TABLE public.outbox ATTACH PARTITION public.far FOR VALUES FROM ('2000-01-01') TO ('2000-01-02')")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, book(ctx, o, pool, "12A"), "the locks that a maker holds")
	require.NoError(t, maker.Rollback(t.Context()))
	require.NoError(t, open.Commit(t.Context()))
}

// A DEFAULT partition takes the rows of a day without one. That day then gets no partition until they are moved, as
// the page has it. The days after it get theirs.
func TestMakePartitions_NamesTheDayWhoseRowsAreInTheDefaultPartition(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	pgtest.Exec(t, pool, bookingsSQL+"; CREATE TABLE public.rest PARTITION OF public.outbox DEFAULT")
	require.NoError(t, book(t.Context(), o, pool, "12A"))
	day := pgtest.Value[string](t, pool, `SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY_MM_DD') FROM public.outbox`)
	today := fmt.Sprintf(`"public"."outbox_%s"`, day)
	made, err := o.MakePartitions(t.Context(), pool, 2)
	require.NotContains(t, made, today)
	if len(made) < 3 { // it is still the day of the row
		require.ErrorContains(t, err, "partition "+today+`: ERROR: updated partition constraint for default partition "rest" would be violated by some row`)
		require.Len(t, made, 2)
	}
	moved := `BEGIN;
		ALTER TABLE public.outbox DETACH PARTITION public.rest;
		CREATE TABLE %[1]s PARTITION OF public.outbox FOR VALUES FROM ('%[2]s 00:00:00+00') TO ('%[2]s 24:00:00+00');
		INSERT INTO public.outbox OVERRIDING SYSTEM VALUE SELECT * FROM public.rest;
		TRUNCATE public.rest;
		ALTER TABLE public.outbox ATTACH PARTITION public.rest DEFAULT;
		COMMIT`
	pgtest.Exec(t, pool, fmt.Sprintf(moved, today, strings.ReplaceAll(day, "_", "-")))
	require.Equal(t, `"12A"`, pgtest.Value[string](t, pool, "SELECT string_agg(payload::text, '') FROM "+today))
	_, err = o.MakePartitions(t.Context(), pool, 2)
	require.NoError(t, err)
}

// Days of another time zone cover the days of UTC two by two, and a part of the day after the last one. That day, and a
// day whose name is taken, are named each time. The others are made, so INSERTs go on.
func TestMakePartitions_ADayThatCannotBeMadeDoesNotStopTheLaterOnes(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	pgtest.Exec(t, pool, `DO $$
		DECLARE day timestamptz := date_trunc('day', clock_timestamp(), 'UTC') - interval '2 hours';
		BEGIN
			FOR n IN 0..2 LOOP -- to 22:00 of the third day
				EXECUTE format('CREATE TABLE public.local_%s PARTITION OF public.outbox FOR VALUES FROM (%L) TO (%L)', n, day + n * interval '1 day', day + (n + 1) * interval '1 day');
			END LOOP;
		END $$`)
	want := days(t, pool, 0, 6)
	pgtest.Exec(t, pool, "CREATE TABLE "+want[4]+" (id bigint)")
	for _, missing := range [][]string{{want[3], want[5], want[6]}, nil} {
		made, err := o.MakePartitions(t.Context(), pool, 6)
		if days(t, pool, 0, 0)[0] != want[0] {
			return // midnight has come
		}
		require.Equal(t, missing, made)
		require.ErrorContains(t, err, "partition "+want[2]+`: ERROR: partition "outbox_`)
		require.ErrorContains(t, err, `would overlap partition "local_2"`)
		require.ErrorContains(t, err, "partition "+want[4]+": ERROR: relation")
		require.NotContains(t, err.Error(), want[1], "two partitions cover it")
	}
}

func TestMakePartitions_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	o, pool := daily(t)
	pgtest.Begin(t, pool, "LOCK TABLE ONLY public.outbox IN SHARE UPDATE EXCLUSIVE MODE")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	made, err := o.MakePartitions(ctx, pool, outbox.MaxDaysAhead)
	require.Empty(t, made)
	require.LessOrEqual(t, strings.Count(err.Error(), `partition "public"`), 1, "one day is tried: %v", err)
}

func TestMakePartitions_RefusesWhatItCannotPartition(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	for name, by := range map[string]string{"plain": "", "hashed": "PARTITION BY HASH (created_at)", "both": "PARTITION BY RANGE (created_at, id)", "ids": "PARTITION BY RANGE (id)"} {
		pgtest.Exec(t, pool, fmt.Sprintf("CREATE TABLE public.%s (id bigint, created_at timestamptz) %s", name, by))
		o, err := outbox.New(outbox.Config{Table: pgx.Identifier{"public", name}})
		require.NoError(t, err)
		_, err = o.MakePartitions(t.Context(), pool, 1)
		require.ErrorIs(t, err, outbox.ErrNotPartitioned, name)
	}
	long := "o1234567890123456789012345678901234567890123456789012"
	for want, c := range map[string]struct {
		table pgx.Identifier
		days  int
	}{
		"between 1 and 366, got 0":   {nil, 0},
		"between 1 and 366, got 367": {nil, 367},
		"has more than 52 bytes":     {pgx.Identifier{"public", long}, 1},
		"give a schema and a name":   {pgx.Identifier{"outbox"}, 1},
		"there is no such table":     {nil, 1},
	} {
		o, err := outbox.New(outbox.Config{Table: c.table})
		require.NoError(t, err)
		_, err = o.MakePartitions(t.Context(), pool, c.days)
		require.ErrorContains(t, err, want)
	}
}
