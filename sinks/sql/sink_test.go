package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func delivery() processor.Delivery {
	return processor.Delivery{
		Record: processor.Record{
			Position:  "c:1/42",
			Table:     "public.bookings",
			ID:        "9007199254740993",
			Key:       "customer-7",
			Type:      "booking.confirmed",
			CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
			Headers:   map[string]string{"trace": "<a>"},
			Payload:   []byte(`{"amount" : 1e400, "id": 9007199254740993}`),
		},
		Process:  "ledger",
		Sequence: 7,
		Epoch:    3,
		Attempt:  1,
	}
}

func newSink(t testing.TB, statements ...string) *Sink {
	t.Helper()
	s, err := New(Config{Statements: statements})
	require.NoError(t, err)
	return s
}

// deliver applies a record as the processor does, and commits if that succeeds.
func deliver(ctx context.Context, pool *pgxpool.Pool, s *Sink, d processor.Delivery) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return s.DeliverTx(ctx, tx, d) })
}

// query returns the only column of a query's rows, as text.
func query(t testing.TB, pool *pgxpool.Pool, sql string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return values
}

func TestDeliverTx_BindsEveryArgumentInTheTypeOfItsColumn(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, `CREATE TABLE public.applied (id bigint, key text, type varchar(20), payload json, payload_b jsonb, headers jsonb,
		created_at timestamptz, sequence bigint, position text, dedup_key text, process name, epoch int)`)
	s := newSink(t, `INSERT INTO public.applied VALUES
		(@id, @key, @type, @payload, @payload, @headers, @created_at, @sequence, @position, @dedup_key, @process, @epoch)`)
	err := deliver(t.Context(), pool, s, delivery())
	require.ErrorContains(t, err, "42P08", "one name is one parameter, of one type")

	s = newSink(t, `INSERT INTO public.applied VALUES
		(@id, @key, @type, @payload, @payload::json::jsonb, @headers, @created_at, @sequence, @position, @dedup_key, @process, @epoch)`)
	require.NoError(t, deliver(t.Context(), pool, s, delivery()))
	require.Equal(t, []string{"9007199254740993", "customer-7", "booking.confirmed", `{"amount" : 1e400, "id": 9007199254740993}`,
		"9007199254740993", `{"trace": "<a>"}`, "2026-01-02 03:04:05.000006", "7", "c:1/42",
		"public.bookings/9007199254740993/1767323045000006", "ledger", "3"},
		query(t, pool, `SELECT unnest(ARRAY[id::text, key, type, payload::text, payload_b->>'id', headers::text,
			(created_at AT TIME ZONE 'UTC')::text, sequence::text, position, dedup_key, process, epoch::text]) FROM public.applied`))
}

func TestDeliverTx_WritesNullsForWhatTheRecordHasNot(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id text, key text, type text, payload jsonb, headers jsonb, created_at timestamptz)")
	s := newSink(t, "INSERT INTO public.applied VALUES (@id, @key, @type, @payload, @headers, @created_at)")
	empty := processor.Delivery{Record: processor.Record{Payload: json.RawMessage{}, Headers: map[string]string{}}}
	for _, d := range []processor.Delivery{{}, empty} {
		require.NoError(t, deliver(t.Context(), pool, s, d))
	}
	const want = `["", null, null, null, {}, null]`
	require.Equal(t, []string{want, want},
		query(t, pool, "SELECT jsonb_build_array(id, key, type, payload, headers, created_at)::text FROM public.applied"))
}

// A reference has none of the fields that a statement looks for, so it would be written as NULL.
func TestDeliverTx_APayloadThatIsNotWholeNeedsTheHeaders(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (amount text, headers jsonb)")
	d := delivery()
	d.Headers, d.Payload = map[string]string{"claim-check": "8f"}, []byte(`{"object": "8f", "bytes": 9, "sha256": "b9"}`)
	err := deliver(t.Context(), pool, newSink(t, "INSERT INTO public.applied VALUES (@payload::jsonb->>'amount')"), d)
	require.ErrorContains(t, err, "its payload is a claim check")
	require.True(t, processor.IsRefused(err), "the record is not at fault")
	require.Empty(t, query(t, pool, "SELECT 'applied' FROM public.applied"))

	for _, aware := range []string{"INSERT INTO public.applied VALUES (@payload::jsonb->>'amount', @headers)", "INSERT INTO public.applied VALUES (@id)"} {
		require.NoError(t, deliver(t.Context(), pool, newSink(t, aware), d))
	}
}

func TestDeliverTx_TimesArriveToTheMicrosecondUnderAnySetting(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (n int, at timestamptz)")
	s := newSink(t, "SET LOCAL DateStyle = 'SQL, DMY'", "SET LOCAL TimeZone = 'Asia/Tokyo'", "INSERT INTO public.applied VALUES (@sequence, @created_at)")
	times := []time.Time{
		time.Date(2026, 2, 1, 0, 0, 0, 123456000, time.FixedZone("", -5*3600)),
		time.Date(12026, 2, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-4, 2, 29, 1, 2, 3, 4000, time.UTC), // 5 BC had that day
	}
	for i, at := range times {
		d := delivery()
		d.Sequence, d.CreatedAt = int64(i), at
		require.NoError(t, deliver(t.Context(), pool, s, d))
	}
	require.Equal(t, []string{"2026-02-01 05:00:00.123456", "12026-02-01 00:00:00", "0005-02-29 01:02:03.000004 BC"},
		query(t, pool, "SELECT (at AT TIME ZONE 'UTC')::text FROM public.applied ORDER BY n"))
}

func TestDeliverTx_RunsStatementsInOrder(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.balance (id int PRIMARY KEY, amount numeric)")
	s := newSink(t,
		"INSERT INTO public.balance VALUES (1, 0) ON CONFLICT DO NOTHING; -- the first time; only",
		"UPDATE public.balance SET amount = amount + (@payload::jsonb->>'amount')::numeric WHERE id = 1;",
		"UPDATE public.balance SET amount = amount * 2")
	d := delivery()
	for _, amount := range []string{"1", "2"} {
		d.Payload = json.RawMessage(`{"amount": ` + amount + `}`)
		require.NoError(t, deliver(t.Context(), pool, s, d))
	}
	require.Equal(t, []string{"8"}, query(t, pool, "SELECT amount::text FROM public.balance"))
}

func TestDeliverTx_NeitherCommitsNorRollsBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id text)")
	s := newSink(t, "INSERT INTO public.applied VALUES (@id)")
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.DeliverTx(t.Context(), tx, delivery()))
	require.EqualValues(t, 'T', tx.Conn().PgConn().TxStatus())
	require.NoError(t, tx.Rollback(t.Context()))
	require.Empty(t, query(t, pool, "SELECT id FROM public.applied"))
}

func TestDeliverTx_AppliesNothingOfAFailedRecord(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id text)")
	s := newSink(t, "INSERT INTO public.applied VALUES (@id)", "SELECT 1/0", "INSERT INTO public.applied VALUES (@key)")
	require.Error(t, deliver(t.Context(), pool, s, delivery()))
	require.Empty(t, query(t, pool, "SELECT id FROM public.applied"))
}

func TestDeliverTx_NoDataBecomesSQL(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (id text, key text, type text, payload text, headers jsonb, position text, process text)")
	s := newSink(t, "DELETE FROM public.applied",
		"INSERT INTO public.applied VALUES (@id, @key, @type, @payload, @headers, @position, @process)")
	hostile := rapid.OneOf(
		rapid.SampledFrom([]string{"'; DROP TABLE public.applied; --", "@id", "$1", `\'`, "$$", "/*", "a'||'b", "\r\n\t"}),
		rapid.StringOf(rapid.RuneFrom([]rune("'\"\\;$@-/*é\u2028"))),
	)
	rapid.Check(t, func(r *rapid.T) {
		d := delivery()
		d.ID, d.Process = hostile.Draw(r, "id"), hostile.Draw(r, "process")
		d.Key, d.Type = "k"+hostile.Draw(r, "key"), "t"+hostile.Draw(r, "type")
		d.Payload = []byte("p" + hostile.Draw(r, "payload"))
		d.Headers = rapid.MapOf(hostile, hostile).Draw(r, "headers")
		require.NoError(r, deliver(t.Context(), pool, s, d))
		var got processor.Delivery
		row := pool.QueryRow(t.Context(), "SELECT id, key, type, convert_to(payload, 'UTF8'), headers, process FROM public.applied")
		require.NoError(r, row.Scan(&got.ID, &got.Key, &got.Type, &got.Payload, &got.Headers, &got.Process))
		require.Equal(r, []string{d.ID, d.Key, d.Type, d.Process}, []string{got.ID, got.Key, got.Type, got.Process})
		require.Equal(r, string(d.Payload), string(got.Payload))
		require.Equal(r, d.Headers, got.Headers)
	})
}

// PostgreSQL is asked whether it reads strings as pgx does: every drawn literal, whatever is in it, arrives as its
// value in a row of its own.
func TestDeliverTx_PostgreSQLReadsStringsAsPgxDoes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (n int, text text, id text)")
	rapid.Check(t, func(r *rapid.T) {
		sources := []string{"DELETE FROM public.applied"}
		var want []string
		for n := range rapid.IntRange(1, 5).Draw(r, "statements") {
			l := literal().Draw(r, "literal")
			sources = append(sources, fmt.Sprintf("INSERT INTO public.applied /* ; ' */ VALUES (%d, %s, @id);", n, l.sql))
			want = append(want, l.value+"|9007199254740993")
		}
		s, err := New(Config{Statements: sources})
		if err != nil { // what may be read in two ways is refused, and not misread
			require.ErrorContains(r, err, "write each string in one piece", sources)
			return
		}
		require.NoError(r, deliver(t.Context(), pool, s, delivery()), sources)
		rows, err := pool.Query(t.Context(), "SELECT text || '|' || id FROM public.applied ORDER BY n")
		require.NoError(r, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(r, err)
		require.Equal(r, want, got)
	})
}

type stringLiteral struct{ sql, value string }

func literal() *rapid.Generator[stringLiteral] {
	text := rapid.StringOf(rapid.RuneFrom([]rune("';@\\-/*$\"Eéa\n ")))
	doubled := func(s string) string { return strings.ReplaceAll(s, "'", "''") }
	backslashed := func(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) }
	return rapid.OneOf(
		rapid.Map(text, func(s string) stringLiteral { return stringLiteral{"'" + doubled(s) + "'", s} }),
		rapid.Map(text, func(s string) stringLiteral { return stringLiteral{"E'" + backslashed(s) + "'", s} }),
		rapid.Map(text, func(s string) stringLiteral {
			return stringLiteral{"e'" + backslashed(s) + "'''", s + "'"}
		}),
		rapid.Map(text, func(s string) stringLiteral {
			return stringLiteral{"'" + doubled(s) + "'\n '" + doubled(s) + "'", s + s}
		}),
		rapid.Map(text, func(s string) stringLiteral { return stringLiteral{"$é1$" + s + "$é1$", s} }),
		rapid.Map(text, func(s string) stringLiteral {
			s = strings.ReplaceAll(s, "$", "")
			return stringLiteral{"$$" + s + "$$", s}
		}),
		rapid.Map(text, func(s string) stringLiteral {
			return stringLiteral{"U&'" + strings.ReplaceAll(doubled(s), `\`, `\\`) + "'", s}
		}),
	)
}

func TestDeliverTx_OperatorsWithAtSignsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, `
		CREATE SCHEMA odd; -- as pgvector, PostGIS and ltree do, and odder
		CREATE FUNCTION odd.f(text, text) RETURNS text LANGUAGE sql AS 'SELECT $1 || $2';
		CREATE FUNCTION odd.g(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
		CREATE OPERATOR odd.<=> (FUNCTION = odd.f, LEFTARG = text, RIGHTARG = text);
		CREATE OPERATOR odd.<@> (FUNCTION = odd.f, LEFTARG = text, RIGHTARG = text);
		CREATE OPERATOR odd.@ (FUNCTION = odd.f, LEFTARG = text, RIGHTARG = text);
		CREATE OPERATOR odd.?@ (FUNCTION = odd.f, LEFTARG = text, RIGHTARG = text);
		CREATE OPERATOR odd.@ (FUNCTION = odd.g, RIGHTARG = text);
		CREATE TABLE public.applied (n int, result text)`)
	for expression, want := range map[string]string{
		`@payload::jsonb @> '{"a":1}'`:                  "true",
		`'{"a":1}' <@ @payload::jsonb`:                  "true",
		`@payload::jsonb @? '$.a'`:                      "true",
		`@payload::jsonb @@ '$.a == 2'`:                 "false",
		`to_tsvector('simple', @key) @@ 'customer'`:     "true",
		`(@-@ lseg '((0,0),(0,3))')::text || @id`:       "39007199254740993",
		`(@ (-@sequence::int))::text`:                   "7",
		`(@@ lseg '((0,0),(0,2))')::text`:               "(0,1)",
		`@id::text<=> @key`:                             "9007199254740993customer-7",
		`@id::text <@> @key`:                            "9007199254740993customer-7",
		`x.y@ x.y`:                                      "zz",
		`x.y@ @key::text`:                               "zcustomer-7",
		`x.y ?@ x.y`:                                    "zz",
		`@ @key::text`:                                  "customer-7",
		`(ARRAY[1,2,3] @> ARRAY[@sequence::int])::text`: "false",
	} {
		s := newSink(t, "SET LOCAL search_path = pg_catalog, odd", "DELETE FROM public.applied",
			"INSERT INTO public.applied SELECT 1, ("+expression+")::text FROM (VALUES ('z')) x (y)")
		d := delivery()
		d.Payload = []byte(`{"a": 1}`)
		require.NoError(t, deliver(t.Context(), pool, s, d), expression)
		require.Equal(t, []string{want}, query(t, pool, "SELECT result FROM public.applied"), expression)
	}
}

// countingConn counts what is written at once.
type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func TestDeliverTx_SendsAllStatementsInOneFlush(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	var writes atomic.Int64
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return countingConn{conn, &writes}, err
	}
	config.TLSConfig, config.Fallbacks = nil, nil
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	s := newSink(t, "SELECT @id::text", "SELECT @key::text", "SELECT @payload::jsonb")
	before := writes.Load()
	require.NoError(t, s.DeliverTx(t.Context(), tx, delivery()))
	require.EqualValues(t, 1, writes.Load()-before)
}

func TestDeliverTx_ReadsAllResults(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	s := newSink(t, "SELECT repeat('x', 1000) FROM generate_series(1, 5000)", "SELECT @id::text WHERE false", "SELECT 1/(3-i) FROM generate_series(1, 5) i")
	err := deliver(t.Context(), pool, s, delivery())
	require.ErrorContains(t, err, "statement 3 of 3", "it fails after its first rows")
	require.NoError(t, deliver(t.Context(), pool, newSink(t, "SELECT 1"), delivery()), "the connection stays usable")
}

func TestDeliverTx_WorksThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	direct := pgtest.Database(t)
	pgtest.Exec(t, direct, "CREATE TABLE public.applied (id text)")
	pool := pgtest.Pool(t, pgtest.Bouncer{PoolSize: 1}.Start(t, pgtest.URL(t))+"&default_query_exec_mode=exec", pgtest.PoolConfig{})
	a := newSink(t, "INSERT INTO public.applied VALUES (@id)", "SELECT @id::text")
	b := newSink(t, "INSERT INTO public.applied VALUES (@key)")
	for range 3 { // by turns, over one session of the server
		require.NoError(t, deliver(t.Context(), pool, a, delivery()))
		require.NoError(t, deliver(t.Context(), pool, b, delivery()))
	}
	require.Len(t, query(t, direct, "SELECT id FROM public.applied"), 6)
}

func TestDeliverTx_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	pid := tx.Conn().PgConn().PID()
	done := make(chan error, 1)
	go func() { done <- newSink(t, "SELECT pg_sleep(60)").DeliverTx(ctx, tx, delivery()) }()
	require.Eventually(t, func() bool { // the server ignores a cancellation that comes before its statement
		return len(query(t, pool, fmt.Sprintf("SELECT wait_event::text FROM pg_stat_activity WHERE pid = %d AND wait_event = 'PgSleep'", pid))) > 0
	}, 30*time.Second, 5*time.Millisecond)
	cancel()
	err = <-done
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, processor.IsPermanent(err))
}

func TestDeliverTx_LargePayloadArrives(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, "CREATE TABLE public.applied (size int)")
	d := delivery()
	d.Payload = []byte(`"` + strings.Repeat("x", 30<<20) + `"`)
	require.NoError(t, deliver(t.Context(), pool, newSink(t, "INSERT INTO public.applied VALUES (length(@payload))"), d))
	require.Equal(t, []string{"31457282"}, query(t, pool, "SELECT size::text FROM public.applied"))
}

func TestDeliverTx_OnlyTheServersWordAboutDataIsPermanent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, `
		CREATE TABLE public.applied (id text PRIMARY KEY, n int NOT NULL CHECK (n > 0));
		CREATE TABLE public.child (id text REFERENCES public.applied, EXCLUDE (id WITH =));
		CREATE VIEW public.small AS SELECT * FROM public.applied WHERE n < 10 WITH CHECK OPTION;
		INSERT INTO public.applied VALUES ('9007199254740993', 1);
		CREATE FUNCTION public.raise(code text) RETURNS void LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = code; END $$`)
	for statement, want := range map[string]struct {
		code      string
		permanent bool
	}{
		"SELECT @key::int":                                                               {"22P02", true},
		"SELECT @payload::jsonb":                                                         {"22P02", true},
		"SELECT 1/(@sequence::int - 7)":                                                  {"22012", true},
		"SELECT (@id || '0000')::bigint":                                                 {"22003", true},
		"SELECT @type::varchar(3)::text::date":                                           {"22007", true},
		"INSERT INTO public.applied VALUES (@id, 1)":                                     {"23505", true},
		"INSERT INTO public.applied VALUES ('a', NULL)":                                  {"23502", true},
		"INSERT INTO public.applied VALUES ('a', -1)":                                    {"23514", true},
		"INSERT INTO public.child VALUES (@key)":                                         {"23503", true},
		"INSERT INTO public.small VALUES ('b', 10)":                                      {"44000", true},
		"SELECT to_tsvector(string_agg(i::text, ' ')) FROM generate_series(1, 200000) i": {"54000", true},
		"SELECT public.raise('22000')":                                                   {"22000", true},
		"SELECT * FROM public.missing":                                                   {"42P01", false},
		"SELECT missing FROM public.applied":                                             {"42703", false},
		"SELEKT":                                                                         {"42601", false},
		"SELECT jsonb_build_array(@id)":                                                  {"42P18", false},
		"INSERT INTO public.applied SELECT FROM pg_authid FOR UPDATE OF missing":         {"42P01", false},
		"CREATE TABLE public.x () WITH (user_catalog_table=2)":                           {"22023", true},
		"VACUUM":                       {"25001", false},
		"SELECT public.raise('P0001')": {"P0001", false},
		"SELECT public.raise('40001')": {"40001", false},
		"SELECT public.raise('40P01')": {"40P01", false},
		"SELECT public.raise('53100')": {"53100", false},
		"SELECT public.raise('55P03')": {"55P03", false},
		"SELECT public.raise('57014')": {"57014", false},
		"SELECT public.raise('0A000')": {"0A000", false},
		"SELECT public.raise('08006')": {"08006", false},
		"SELECT public.raise('XX001')": {"XX001", false},
		"SET LOCAL transaction_read_only = on; INSERT INTO public.applied VALUES ('c', 1)": {"25006", false},
	} {
		d := delivery()
		d.Payload = []byte("no JSON")
		err := deliver(t.Context(), pool, newSink(t, strings.Split(statement, "; ")...), d)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, statement)
		require.Equal(t, want.code, pgErr.Code, statement)
		require.Equal(t, want.permanent, processor.IsPermanent(err), statement)
	}
}

func TestDeliverTx_NULInDataIsPermanent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	d := delivery()
	d.Payload = []byte(`"\u0000"`)
	require.NoError(t, deliver(t.Context(), pool, newSink(t, "SELECT @payload::json"), d))
	require.True(t, processor.IsPermanent(deliver(t.Context(), pool, newSink(t, "SELECT @payload::jsonb"), d)))
	d.ID = "\x00"
	require.True(t, processor.IsPermanent(deliver(t.Context(), pool, newSink(t, "SELECT @id"), d)))
}

func TestDeliverTx_ErrorNamesRecordAndStatementInOneShortLine(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	d := delivery()
	d.Payload = []byte("\x1b[31m\n" + strings.Repeat("é", 1<<20) + " CANARY")
	err := deliver(t.Context(), pool, newSink(t, "SELECT 1", "SELECT @payload::int", "SELECT 2"), d)
	require.ErrorContains(t, err, `apply record "9007199254740993": statement 2 of 3: ERROR: invalid input syntax for type integer: " [[…]… (SQLSTATE 22P02); correct the row or the statement`)
	require.NotContains(t, err.Error(), "CANARY")
	require.Less(t, len(err.Error()), 800)
	require.NotContains(t, err.Error(), "\n")
	require.NotContains(t, err.Error(), "\x1b")
}

func BenchmarkDeliverTx(b *testing.B) {
	pool := pgtest.Database(b)
	pgtest.Exec(b, pool, "CREATE TABLE public.applied (id bigint PRIMARY KEY, amount numeric)")
	s := newSink(b, "INSERT INTO public.applied VALUES (@id, (@payload::jsonb->>'amount')::numeric) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount")
	tx, err := pool.Begin(b.Context())
	require.NoError(b, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	d := delivery()
	d.Payload = []byte(`{"amount": 12.5}`)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.DeliverTx(b.Context(), tx, d))
	}
}
