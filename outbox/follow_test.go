package outbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// What the statements do to each kind of table is tested in package table.
func TestFollow_ReturnsWhatATableLacksUntilItIsReady(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.bookings (id bigint PRIMARY KEY, booked_at timestamptz DEFAULT now())")
	config := table.Config{Table: "public.bookings", Columns: table.Columns{CreatedAt: "booked_at"}}
	statements, findings, err := outbox.Follow(t.Context(), pool, config)
	require.NoError(t, err)
	require.Empty(t, findings)
	require.Equal(t, []string{
		`ALTER TABLE "public"."bookings" ALTER COLUMN "booked_at" SET DEFAULT clock_timestamp()`,
		`ALTER TABLE "public"."bookings" ALTER COLUMN "booked_at" SET NOT NULL`,
		`CREATE INDEX CONCURRENTLY ON "public"."bookings" ("booked_at", "id")`,
	}, statements)
	for _, statement := range statements {
		pgtest.Exec(t, pool, statement)
	}
	statements, findings, err = outbox.Follow(t.Context(), pool, config)
	require.NoError(t, err)
	require.Empty(t, statements)
	require.Empty(t, findings)

	_, _, err = outbox.Follow(t.Context(), pool, table.Config{})
	require.ErrorContains(t, err, "table")
	pool.Close()
	_, _, err = outbox.Follow(t.Context(), pool, config)
	require.ErrorContains(t, err, "find the DDL for table public.bookings")
}

// The table that Create makes is ready, and so are the partitions that MakePartitions makes.
func TestFollow_FindsNothingToChangeInAnOutbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]outbox.Config{"json": {}, "partitioned": {Partitioned: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := outbox.New(c)
			require.NoError(t, err)
			pool := pgtest.Database(t)
			_, err = o.Create(t.Context(), pool)
			require.NoError(t, err)
			if c.Partitioned {
				_, err = o.MakePartitions(t.Context(), pool, 2)
				require.NoError(t, err)
			}
			statements, findings, err := outbox.Follow(t.Context(), pool, table.Config{Table: "public.outbox", Preset: table.Outbox})
			require.NoError(t, err)
			require.Empty(t, statements)
			require.Empty(t, findings)
		})
	}
}
