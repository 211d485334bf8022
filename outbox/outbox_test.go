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
	"go.opentelemetry.io/otel/trace"

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

func TestAdd_KeepsTheBytesOfARawPayload(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{Table: pgx.Identifier{"public", "Raw Box"}, Raw: true})
	for way, add := range adds(pool) {
		pgtest.Exec(t, pool, `TRUNCATE public."Raw Box"`)
		require.NoError(t, add(t.Context(), o, outbox.Record{Type: "a", Payload: []byte("\x00\xff\\x")}, outbox.Record{Type: "b", Payload: []int{1}}), way)
		require.Equal(t, `00ff5c78 5b315d`, pgtest.Value[string](t, pool, `SELECT string_agg(encode(payload, 'hex'), ' ' ORDER BY id) FROM public."Raw Box"`), way)
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

// A record that is refused leaves the transaction as it was.
func TestAdd_RefusesARecordBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{MaxBytes: 100})
	for want, r := range map[string]outbox.Record{
		"it has no Type":                                       {Payload: 1},
		`"\xff" is not UTF-8`:                                  {Type: "a", Key: "\xff"},
		"its payload is a []byte":                              {Type: "a", Payload: []byte("{}")},
		"encode its payload: json: unsupported":                {Type: "a", Payload: func() {}},
		"encode its payload: json: error calling":              {Type: "a", Payload: json.RawMessage(`{"a":`)},
		"payload and headers have 103 bytes, and may have 100": {Type: "a", Payload: strings.Repeat("a", 100), Headers: map[string]string{"b": ""}},
	} {
		tx := pgtest.Begin(t, pool, "SELECT 1")
		err := o.Add(t.Context(), tx, outbox.Record{Type: "fine", Payload: 1}, r)
		var refused *outbox.RecordError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 1, refused.Index)
		require.ErrorContains(t, err, "outbox: record 1: ")
		require.ErrorContains(t, err, want)
		require.Equal(t, strings.HasPrefix(want, "payload and"), errors.Is(err, outbox.ErrTooLarge))
		require.NoError(t, o.Add(t.Context(), tx, outbox.Record{Type: "fine", Payload: 1}), "the transaction goes on")
		require.NoError(t, tx.Rollback(t.Context()))
	}
	require.NoError(t, o.Add(t.Context(), nil), "nothing to add")
}

func TestAdd_SaysWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	for way, add := range adds(pool) {
		err := add(t.Context(), o, outbox.Record{Type: "a", Payload: "\x00"})
		require.ErrorContains(t, err, `add 1 records to "public"."outbox": `, way)
		require.ErrorContains(t, err, "unsupported Unicode escape sequence", way)
	}
}

func TestAdd_PutsTheTraceIntoTheHeaders(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{})
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(traced, tx, outbox.Record{Type: "a", Payload: 1, Headers: map[string]string{"tenant": "x"}},
			outbox.Record{Type: "b", Payload: 1, Headers: map[string]string{"traceparent": own}})
	}))
	require.Equal(t, "00-01000000000000000000000000000000-0200000000000000-00 x, "+own+" ",
		pgtest.Value[string](t, pool, `SELECT string_agg(concat(headers ->> 'traceparent', ' ', headers ->> 'tenant'), ', ' ORDER BY id) FROM public.outbox`))
}
