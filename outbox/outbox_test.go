package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// made returns a database with the table of an outbox.
func made(t *testing.T, c outbox.Config) (*outbox.Outbox, *pgxpool.Pool) {
	t.Helper()
	o, err := outbox.New(c)
	require.NoError(t, err)
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, o.SQL())
	return o, pool
}

// adds are both ways to add, each in a transaction that is committed if it succeeds.
func adds(pool *pgxpool.Pool) map[string]func(ctx context.Context, o *outbox.Outbox, records ...outbox.Record) error {
	db := stdlib.OpenDBFromPool(pool)
	return map[string]func(context.Context, *outbox.Outbox, ...outbox.Record) error{
		"pgx": func(ctx context.Context, o *outbox.Outbox, records ...outbox.Record) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return o.Add(ctx, tx, records...) })
		},
		"database/sql": func(ctx context.Context, o *outbox.Outbox, records ...outbox.Record) error {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{})
			if err != nil {
				return err
			}
			if err := o.AddSQL(ctx, tx, records...); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		},
	}
}

func TestAdd_WritesEachFieldInOrder(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	for way, add := range adds(pool) {
		pgtest.Exec(t, pool, "TRUNCATE public.outbox")
		require.NoError(t, add(t.Context(), o,
			outbox.Record{Type: "booking.created", AggregateType: "booking", AggregateID: "4711", Payload: map[string]any{"seats": 2, "note": "<a> & 'b' \" \\ é"}, Headers: map[string]string{"tenant": "x"}},
			outbox.Record{Type: "booking.paid", AggregateID: "4711", Key: "customer-1", Payload: json.RawMessage(`{"n": 12345678901234567890.12}`)},
			outbox.Record{Type: "booking.closed", Payload: nil},
		), way)
		require.Equal(t, `[["booking", "4711", "4711", "booking.created", {"note": "<a> & 'b' \" \\ é", "seats": 2}, {"tenant": "x"}], `+
			`[null, "4711", "customer-1", "booking.paid", {"n": 12345678901234567890.12}, null], `+
			`[null, null, null, "booking.closed", null, null]]`,
			pgtest.Value[string](t, pool, `SELECT jsonb_agg(jsonb_build_array(aggregate_type, aggregate_id, key, type, payload, headers) ORDER BY id)::text FROM public.outbox`), way)
		require.True(t, pgtest.Value[bool](t, pool, `SELECT array_agg(id ORDER BY created_at, id) = array_agg(id ORDER BY id) AND count(DISTINCT transaction_id) = 1 FROM public.outbox`), way)
	}
}

// However many records there are, the server is asked once.
func TestAdd_IsOneStatement(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	pgtest.Exec(t, pool, `CREATE TABLE public.statement (rows int);
		CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.statement SELECT count(*) FROM added; RETURN NULL; END $$;
		CREATE TRIGGER notes AFTER INSERT ON public.outbox REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.note()`)
	for way, add := range adds(pool) {
		pgtest.Exec(t, pool, "TRUNCATE public.statement")
		require.NoError(t, add(t.Context(), o, outbox.Record{Type: "a"}, outbox.Record{Type: "b"}, outbox.Record{Type: "c"}), way)
		require.Equal(t, "3", pgtest.Value[string](t, pool, "SELECT string_agg(rows::text, ' ') FROM public.statement"), way)
	}
}

func TestAdd_IsPartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	tx := pgtest.Begin(t, pool, "SELECT 1")
	require.NoError(t, o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: 1}))
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox"))
}

// A trigger may drop a row, and the server reports no error.
func TestAdd_SaysThatTheServerWroteFewerRows(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	pgtest.Exec(t, pool, `CREATE FUNCTION public.drop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE NEW.type WHEN 'b' THEN NULL ELSE NEW END; END $$;
		CREATE TRIGGER drops BEFORE INSERT ON public.outbox FOR EACH ROW EXECUTE FUNCTION public.drop()`)
	for way, add := range adds(pool) {
		require.NoError(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: 1}), way)
		err := add(t.Context(), o, outbox.Record{Type: "a", Payload: 1}, outbox.Record{Type: "b", Payload: 1})
		require.ErrorContains(t, err, `add 2 records to "public"."outbox": the server wrote 1 rows: a trigger or a rule of the table changes what is inserted: roll back, and remove it`, way)
	}
	require.Equal(t, 2, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox"))
}

func TestAdd_SaysWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	pgtest.Exec(t, pool, "ALTER TABLE public.outbox ADD CONSTRAINT no_a CHECK (type <> 'a')")
	for way, add := range adds(pool) {
		err := add(t.Context(), o, outbox.Record{Type: "a", Payload: 1})
		require.ErrorContains(t, err, `add 1 records to "public"."outbox": `, way)
		require.ErrorContains(t, err, "no_a", way)
	}
}

// The search_path is the caller's, and may put other types, functions and operators first.
func TestAdd_TakesNothingFromTheSearchPath(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, `CREATE SCHEMA evil;
		CREATE DOMAIN evil.json AS pg_catalog.json CHECK (false);
		CREATE DOMAIN evil.jsonb AS pg_catalog.jsonb CHECK (false);
		CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
		CREATE FUNCTION evil.fail(pg_catalog.json, pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql AS $$ SELECT (1/0)::pg_catalog.text $$;
		CREATE OPERATOR evil.->> (LEFTARG = pg_catalog.json, RIGHTARG = pg_catalog.text, FUNCTION = evil.fail);
		CREATE OPERATOR evil.-> (LEFTARG = pg_catalog.json, RIGHTARG = pg_catalog.text, FUNCTION = evil.fail);
		CREATE FUNCTION evil.decode(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.bytea LANGUAGE sql AS $$ SELECT (1/0)::pg_catalog.text::pg_catalog.bytea $$`)
	for _, raw := range []bool{false, true} {
		o, err := outbox.New(outbox.Config{Raw: raw})
		require.NoError(t, err)
		pgtest.Exec(t, pool, "DROP TABLE IF EXISTS public.outbox")
		pgtest.Exec(t, pool, o.SQL())
		for _, path := range []string{"evil", "evil, pg_catalog"} {
			tx := pgtest.Begin(t, pool, "SET LOCAL search_path = "+path)
			require.NoError(t, o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: 1, Headers: map[string]string{"b": "c"}}), path)
			require.NoError(t, tx.Commit(t.Context()))
		}
		require.Equal(t, 2, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox WHERE type = 'a'"))
	}
}

func TestNew_RefusesNamesThatPostgreSQLWouldChange(t *testing.T) {
	t.Parallel()
	for want, name := range map[string]pgx.Identifier{
		"a part is empty":                     {""},
		`["public" ""]: a part is empty`:      {"public", ""},
		"has 64 bytes":                        {"public", strings.Repeat("é", 32)},
		"has a NUL":                           {"a\x00", "b"},
		"is not UTF-8":                        {"a\xff"},
		"give a name, or a schema and a name": {"a", "b", "c"},
	} {
		_, err := outbox.New(outbox.Config{Table: name})
		require.ErrorContains(t, err, "outbox: Table is [")
		require.ErrorContains(t, err, want)
	}
	_, err := outbox.New(outbox.Config{Table: pgx.Identifier{strings.Repeat("é", 31) + "a", "My \"Table\""}})
	require.NoError(t, err)
}
