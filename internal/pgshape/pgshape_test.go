package pgshape_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgshape"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// shape returns what Of finds.
func shape(t *testing.T, tx pgx.Tx, schema, name string) *pgshape.Shape {
	t.Helper()
	found, err := pgshape.Of(t.Context(), tx, pgx.Identifier{schema, name})
	require.NoError(t, err)
	return found
}

func TestOf_NamesTheColumnsThatATableHasNow(t *testing.T) {
	t.Parallel()
	tx := pgtest.Begin(t, pgtest.Database(t), `
		CREATE SCHEMA "My App";
		CREATE TYPE public.mood AS ENUM ('good');
		CREATE TABLE "My App"."T" (id bigint, gone text, "a b" varchar(9), m public.mood, at timestamptz(3)[]);
		ALTER TABLE "My App"."T" DROP COLUMN gone;
		CREATE TABLE public.parted (id int) PARTITION BY RANGE (id);
		CREATE VIEW public.v AS SELECT 1 AS one;
		CREATE TABLE public.bare ();
		SET LOCAL search_path = pg_catalog`)

	found := shape(t, tx, "My App", "T")
	require.Equal(t, &pgshape.Shape{Kind: "r", Columns: []string{
		"id bigint", "a b character varying(9)", "m public.mood", "at timestamp(3) with time zone[]",
	}}, found)
	require.Empty(t, found.Lacks("m public.mood", "id bigint"), "in any order, and further columns do no harm")
	require.Equal(t, []string{"gone text", "id integer"}, found.Lacks("gone text", "id bigint", "id integer"))

	require.Equal(t, &pgshape.Shape{Kind: "p", Columns: []string{"id integer"}}, shape(t, tx, "public", "parted"))
	require.Equal(t, &pgshape.Shape{Kind: "v", Columns: []string{"one integer"}}, shape(t, tx, "public", "v"))
	require.Empty(t, shape(t, tx, "public", "bare").Columns)
	for schema, name := range map[string]string{"My App": "t", "public": "T", "none": "T", `"My App"`: "T"} {
		require.Nil(t, shape(t, tx, schema, name), "%s.%s", schema, name)
	}
}

func TestOf_ReportsWhyItCannotLook(t *testing.T) {
	t.Parallel()
	tx := pgtest.Begin(t, pgtest.Database(t), "SELECT 1")
	_, err := tx.Exec(t.Context(), "SELECT 1/0")
	require.Error(t, err)
	found, err := pgshape.Of(t.Context(), tx, pgx.Identifier{"public", "t"})
	require.ErrorContains(t, err, "current transaction is aborted")
	require.Nil(t, found)
}
