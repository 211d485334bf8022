package shadow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgshape"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// renders is a sinks.Renderer.
type renders func(d processor.Delivery) (sinks.Call, error)

func (f renders) Render(d processor.Delivery) (sinks.Call, error) { return f(d) }

func payload(d processor.Delivery) (sinks.Call, error) {
	return sinks.Call{Target: "to " + d.Process, Body: d.Payload, Hidden: "token"}, nil
}

var table = pgx.Identifier{"public", `Calls "of" {table}`}

// record records a delivery, and commits.
func record(t *testing.T, on *pgx.Conn, c shadow.Config, d processor.Delivery) error {
	t.Helper()
	c.Table = table
	sink, err := shadow.New(c)
	require.NoError(t, err)
	return pgx.BeginFunc(t.Context(), on, func(tx pgx.Tx) error { return sink.DeliverTx(t.Context(), tx, d) })
}

func delivery(payload string) processor.Delivery {
	return processor.Delivery{Process: "a@shadow", Sequence: 1, Record: processor.Record{Position: "int:1", Table: "public.t", ID: "1", Payload: []byte(payload)}}
}

func TestCreate_MakesTheTableOnceAndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	require.ErrorIs(t, shadow.Inspect(t.Context(), pool, table), shadow.ErrNoTable)
	made, err := shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
	require.True(t, made)
	made, err = shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
	require.False(t, made)
	require.NoError(t, shadow.Inspect(t.Context(), pool, table))

	pgtest.Exec(t, pool, "CREATE TABLE public.other (process text, position text, nothing text)")
	other := pgx.Identifier{"public", "other"}
	_, err = shadow.Create(t.Context(), pool, other)
	require.ErrorIs(t, err, shadow.ErrOtherTable)
	require.ErrorContains(t, err, "lacks sequence bigint, dedup_key text")
	require.ErrorIs(t, shadow.Inspect(t.Context(), pool, other), shadow.ErrOtherTable)
	_, err = shadow.Create(t.Context(), pool, pgx.Identifier{"none", "calls"})
	require.ErrorContains(t, err, `"none"."calls"`)
}

// The owner of the table, or of a trigger's function, can run code with the rights of the workers.
func TestCreate_RefusesATableOfAnotherRole(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	stranger := pgtest.Role(t, pool, "od_", "")
	_, err := shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
	pgtest.Exec(t, pool, "ALTER TABLE "+table.Sanitize()+" OWNER TO "+stranger)
	_, err = shadow.Create(t.Context(), pool, table)
	require.ErrorIs(t, err, pgshape.ErrStranger)
	require.ErrorContains(t, err, "it belongs to role \""+stranger+"\"")
	pgtest.Exec(t, pool, "ALTER TABLE "+table.Sanitize()+" OWNER TO CURRENT_USER; CREATE FUNCTION public.evil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; ALTER FUNCTION public.evil() OWNER TO "+stranger+
		"; CREATE TRIGGER t BEFORE INSERT ON "+table.Sanitize()+" FOR EACH ROW EXECUTE FUNCTION public.evil()")
	_, err = shadow.Create(t.Context(), pool, table)
	require.ErrorIs(t, err, pgshape.ErrStranger)
	require.ErrorContains(t, err, "it calls \"evil\", which belongs to role \""+stranger+"\"")
	pgtest.Exec(t, pool, "ALTER FUNCTION public.evil() OWNER TO CURRENT_USER")
	_, err = shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
}

func TestSink_StoresWhatNoTextOfPostgreSQLCanHold(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	_, err := shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
	conn := pgtest.Connect(t, pgtest.URL(t))
	strange := renders(func(d processor.Delivery) (sinks.Call, error) {
		return sinks.Call{Target: "\x00\xff", Headers: map[string]string{"n\x00": "\xfe\x00é"}, Body: []byte("\x00\xff")}, nil
	})
	require.NoError(t, record(t, conn, shadow.Config{Sink: strange, Other: &shadow.Version{Process: "a", Sink: renders(payload)}}, delivery("\x00")))
	var target, headers string
	var body, other []byte
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT target, headers::text, body, other_body FROM "+table.Sanitize()).Scan(&target, &headers, &body, &other))
	require.Equal(t, "\uFFFD\uFFFD", target)
	require.Equal(t, `{"n`+"\uFFFD"+`": "`+"\uFFFD\uFFFD"+`é"}`, headers)
	require.Equal(t, "\x00\xff", string(body))
	require.Equal(t, "\x00", string(other))
}

// TestSink_RendersBothUnderOneName: so a name in a template or a header is no difference. Each prepares the row itself.
func TestSink_RendersBothUnderOneName(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	_, err := shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
	conn := pgtest.Connect(t, pgtest.URL(t))
	upper := func(_ context.Context, r processor.Record) (processor.Record, error) {
		r.Payload = append([]byte("2"), r.Payload...)
		return r, nil
	}
	require.NoError(t, record(t, conn, shadow.Config{Sink: renders(payload), Other: &shadow.Version{Process: "a", Sink: renders(payload)}}, delivery("1")))
	compared, err := shadow.Compare(t.Context(), pool, table, "a@shadow", "a", 5)
	require.NoError(t, err)
	require.Equal(t, shadow.Comparison{Calls: 1, Last: "int:1", First: []shadow.Difference{}}, compared)

	require.NoError(t, record(t, conn, shadow.Config{Sink: renders(payload), Other: &shadow.Version{Process: "a", Sink: renders(payload), Prepare: upper}}, delivery("1")))
	compared, err = shadow.Compare(t.Context(), pool, table, "a@shadow", "a", 5)
	require.NoError(t, err)
	require.Equal(t, shadow.Comparison{Calls: 1, Differing: 1, Last: "int:1", First: []shadow.Difference{{Sequence: 1, DedupKey: "public.t/1", Differs: []string{"body"}}}}, compared)
	require.Equal(t, "to a", pgtest.Value[string](t, pool, "SELECT target FROM "+table.Sanitize()))
	require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(*) FROM "+table.Sanitize()), "a record that is recorded again has one row")

	require.NoError(t, record(t, conn, shadow.Config{Sink: renders(payload)}, delivery("1")))
	compared, err = shadow.Compare(t.Context(), pool, table, "a@shadow", "a", 5)
	require.NoError(t, err)
	require.Zero(t, compared.Calls, "nothing was compared")
}

func TestSink_TellsTheRecordsFaultFromAnOutage(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	conn := pgtest.Connect(t, pgtest.URL(t))
	fails := func(err error) renders {
		return func(processor.Delivery) (sinks.Call, error) { return sinks.Call{}, err }
	}
	poison, outage := processor.Permanent(errors.New("poison")), errors.New("outage")
	require.True(t, processor.IsRefused(record(t, conn, shadow.Config{Sink: renders(payload)}, delivery("1"))), "there is no table")
	_, err := shadow.Create(t.Context(), pool, table)
	require.NoError(t, err)
	require.ErrorIs(t, record(t, conn, shadow.Config{Sink: fails(poison)}, delivery("1")), poison)
	require.ErrorIs(t, record(t, conn, shadow.Config{Sink: renders(payload), Other: &shadow.Version{Process: "a", Sink: fails(outage)}}, delivery("1")), outage)
	store := func(context.Context, processor.Record) (processor.Record, error) { return processor.Record{}, outage }
	err = record(t, conn, shadow.Config{Sink: renders(payload), Other: &shadow.Version{Process: "a", Sink: renders(payload), Prepare: store}}, delivery("1"))
	require.True(t, processor.IsUnreached(err), err)
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM "+table.Sanitize()))

	require.NoError(t, record(t, conn, shadow.Config{Sink: renders(payload), Other: &shadow.Version{Process: "a", Sink: fails(poison)}}, delivery("1")))
	compared, err := shadow.Compare(t.Context(), pool, table, "a@shadow", "a", 5)
	require.NoError(t, err)
	require.Equal(t, []string{"no call: the other process cannot send this record"}, compared.First[0].Differs)
}

func TestNew_NamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := shadow.New(shadow.Config{Table: pgx.Identifier{"calls"}, Other: &shadow.Version{}})
	for _, fault := range []string{"give a schema and a name", "Sink is missing", "Other needs"} {
		require.ErrorContains(t, err, fault)
	}
}
