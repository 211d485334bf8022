package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/zstd"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

var long = strings.Repeat("long ", 1000)

func TestAdd_CompressesWhatIsLarge(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{Raw: true, CompressAbove: 100})
	headers := map[string]string{"tenant": "x"}
	noise := []byte(strings.Repeat("n", 101))
	for i := range noise {
		noise[i] = byte(i * 167)
	}
	require.NoError(t, adds(pool)["pgx"](t.Context(), o,
		outbox.Record{Type: "a", Payload: []byte(long), Headers: headers},
		outbox.Record{Type: "a", Payload: []byte("short")},
		outbox.Record{Type: "a", Payload: noise}))
	all := pgtest.Value[[][]byte](t, pool, "SELECT array_agg(payload ORDER BY id) FROM public.outbox")
	whole, err := zstd.Decompress(all[0], len(long))
	require.NoError(t, err)
	require.Equal(t, long, string(whole))
	require.Less(t, len(all[0]), 100)
	require.Equal(t, "short", string(all[1]))
	require.Equal(t, noise, all[2], "it does not get smaller")
	require.Equal(t, []string{"zstd x", "-", "-"}, pgtest.Value[[]string](t, pool,
		`SELECT array_agg(coalesce(headers ->> 'content-encoding' || ' ' || (headers ->> 'tenant'), '-') ORDER BY id) FROM public.outbox`))
	require.Equal(t, map[string]string{"tenant": "x"}, headers, "the caller's")
}

// madeStore is a new store in a directory.
func madeStore(t *testing.T) claim.Dir {
	t.Helper()
	store := claim.Dir(t.TempDir())
	require.NoError(t, store.Create())
	return store
}

func TestAdd_PutsALargePayloadIntoTheStoreBeforeTheInsert(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]outbox.Config{"jsonb": {}, "bytea": {Raw: true}, "bytea, compressed": {Raw: true, CompressAbove: 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.ClaimAbove, config.Claims = 20, madeStore(t)
			o, pool := made(t, config)
			require.NoError(t, adds(pool)["database/sql"](t.Context(), o,
				outbox.Record{Type: "a", Payload: long}, outbox.Record{Type: "a", Payload: "short"}))
			header := pgtest.Value[string](t, pool, "SELECT headers ->> 'claim-check' FROM public.outbox ORDER BY id LIMIT 1")
			row := "payload::text::bytea"
			if config.Raw {
				row = "payload"
			}
			reference, err := claim.Parse(header, pgtest.Value[[]byte](t, pool, "SELECT "+row+" FROM public.outbox ORDER BY id LIMIT 1"))
			require.NoError(t, err)
			object, err := reference.Resolve(t.Context(), config.Claims, 1<<20)
			require.NoError(t, err)
			if config.CompressAbove > 0 {
				object, err = zstd.Decompress(object, 1<<20)
				require.NoError(t, err)
			}
			require.Equal(t, `"`+long+`"`, string(object))
			require.True(t, pgtest.Value[bool](t, pool, "SELECT headers IS NULL FROM public.outbox ORDER BY id DESC LIMIT 1"))
		})
	}
}

// full is a store without room.
type full struct{ claim.Store }

func (full) Put(context.Context, string, []byte) error { return errors.New("no space left") }

// A producer that commits after a RecordError would lose each large record while the store is away.
func TestAdd_AStoreThatIsAwayIsNoFaultOfTheRecord(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: full{}})
	for name, add := range adds(pool) {
		err := add(t.Context(), o, outbox.Record{Type: "a", Payload: "short"}, outbox.Record{Type: "a", Payload: long})
		var refused *outbox.RecordError
		require.False(t, errors.As(err, &refused), name)
		require.EqualError(t, err, "outbox: record 1: put the payload into its store: no space left", name)
	}
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox"), "not even the short one")
}

func TestAdd_ChecksTheSettingsAndHeadersOfLargePayloads(t *testing.T) {
	t.Parallel()
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: full{}})
	_, err := outbox.New(outbox.Config{CompressAbove: 1})
	require.ErrorContains(t, err, "CompressAbove needs Config.Raw")
	_, err = outbox.New(outbox.Config{ClaimAbove: 1})
	require.ErrorContains(t, err, "ClaimAbove needs Claims")
	err = adds(pool)["pgx"](t.Context(), o, outbox.Record{Type: "a", Headers: map[string]string{"claim-check": "x"}})
	require.ErrorContains(t, err, `its header "claim-check" is that of a claim check`)
}

// objects are the names in the store, each with its file made old.
func objects(t *testing.T, dir claim.Dir, age time.Duration) (names []string) {
	t.Helper()
	require.NoError(t, dir.List(t.Context(), func(o claim.Object) error {
		names = append(names, o.Name)
		past := time.Now().Add(-age)
		return os.Chtimes(filepath.Join(string(dir), o.Name[:2], o.Name), past, past)
	}))
	return names
}

func collect(t *testing.T, o *outbox.Outbox, pool *pgxpool.Pool, age time.Duration, others ...pgx.Identifier) int {
	t.Helper()
	removed, err := o.Collect(t.Context(), pool, age, others...)
	require.NoError(t, err)
	return removed.Objects
}

func TestCollect_RemovesOrphansAfterTheTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := madeStore(t)
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: dir})
	add := func(tx pgx.Tx) { require.NoError(t, o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: long})) }
	begin := func() pgx.Tx {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		return tx
	}
	rolledBack := begin()
	add(rolledBack)
	require.NoError(t, rolledBack.Rollback(t.Context()))
	require.Zero(t, collect(t, o, pool, time.Hour), "not before the time")

	committed := begin()
	add(committed)
	require.NoError(t, committed.Commit(t.Context()))
	require.Len(t, objects(t, dir, 2*time.Hour), 2)
	require.Equal(t, 1, collect(t, o, pool, time.Hour), "that of the rolled back transaction")
	require.Len(t, objects(t, dir, 2*time.Hour), 1)
	require.Zero(t, collect(t, o, pool, time.Hour), "a row refers to it")

	// The row is deleted, and a dead letter still refers to the object.
	pgtest.Exec(t, pool, "CREATE TABLE public.letter AS SELECT headers::json AS headers FROM public.outbox; DELETE FROM public.outbox")
	require.Zero(t, collect(t, o, pool, time.Hour, pgx.Identifier{"public", "letter"}))
	_, err := o.Collect(t.Context(), pool, time.Hour, pgx.Identifier{"public", "none"})
	require.ErrorContains(t, err, `"public"."none"`)
	require.Len(t, objects(t, dir, 2*time.Hour), 1, "nothing is removed if a table cannot be read")
	require.Equal(t, 1, collect(t, o, pool, time.Hour))
}

// A transaction may be open for longer than the age: its object is younger than the transaction, and stays.
func TestCollect_AnInsertThatIsStillOpenKeepsItsObject(t *testing.T) {
	t.Parallel()
	dir := madeStore(t)
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: dir})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: long}))
	require.Zero(t, collect(t, o, pool, time.Nanosecond))
	_, err = tx.Exec(t.Context(), "SELECT pg_sleep(0.05)")
	require.NoError(t, err)
	open, err := outbox.OpenFor(t.Context(), pool)
	require.NoError(t, err)
	require.GreaterOrEqual(t, open, 50*time.Millisecond, "so old may its object be")
	require.NoError(t, tx.Commit(t.Context()))
	require.Zero(t, collect(t, o, pool, time.Nanosecond), "now a row refers to it")
	require.Len(t, objects(t, dir, 0), 1)
	require.True(t, bytes.Contains([]byte(pgtest.Value[string](t, pool, "SELECT payload::text FROM public.outbox")), []byte("sha256")))
}

func TestCollect_RowsThatRowSecurityHidesEndIt(t *testing.T) {
	t.Parallel()
	dir := madeStore(t)
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: dir})
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: long})
	}))
	require.Len(t, objects(t, dir, 2*time.Hour), 1)
	role := pgtest.Role(t, pool, "od_", "")
	pgtest.Exec(t, pool, `ALTER TABLE public.outbox ENABLE ROW LEVEL SECURITY; GRANT SELECT ON public.outbox TO `+role)
	hidden := pgtest.Pool(t, pgtest.With(t, pool.Config().ConnString(), "role", role), pgtest.PoolConfig{})
	_, err := o.Collect(t.Context(), hidden, time.Hour)
	require.ErrorContains(t, err, "row-level security")
	require.Len(t, objects(t, dir, 2*time.Hour), 1)
}

// A json may have escapes that no text can have, in any of its members. The row counts, and so do all others.
func TestCollect_EscapesThatNoTextCanHaveHideNoReference(t *testing.T) {
	t.Parallel()
	dir := madeStore(t)
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: dir})
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: long})
	}))
	name := objects(t, dir, 2*time.Hour)[0]
	pgtest.Exec(t, pool, `DELETE FROM public.outbox; CREATE TABLE public.letter (headers json)`)
	for _, headers := range []string{
		`{"x": "a\u0000b", "claim-check": "` + name + `"}`,
		`{"x": "\ud800", "claim\u002dcheck": "` + name + `"}`,
		`{"claim-check": "` + fmt.Sprintf(`\u%04x`, name[0]) + name[1:] + `"}`,
		`{"claim-check": "` + name + `"}`,
	} {
		pgtest.Exec(t, pool, `DELETE FROM public.letter`)
		_, err := pool.Exec(t.Context(), `INSERT INTO public.letter VALUES ($1), ('{"x": "\u0000"}'), ('["\u0000"]'), ('"\u0000"'), ('{"n": 1e999999, "x": "\u0000"}'), (NULL)`, headers)
		require.NoError(t, err)
		require.Zero(t, collect(t, o, pool, time.Hour, pgx.Identifier{"public", "letter"}), headers)
	}
	pgtest.Exec(t, pool, `DELETE FROM public.letter WHERE headers::text LIKE '%claim%'`)
	require.Equal(t, 1, collect(t, o, pool, time.Hour, pgx.Identifier{"public", "letter"}))
}

// A view runs functions of its owner with the rights of the role that reads.
func TestCollect_ReadsInATransactionThatChangesNothing(t *testing.T) {
	t.Parallel()
	dir := madeStore(t)
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: dir})
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: long})
	}))
	require.Len(t, objects(t, dir, 2*time.Hour), 1)
	pgtest.Exec(t, pool, `
		CREATE TABLE public.taken (n int);
		CREATE FUNCTION public.take() RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.taken VALUES (1); RETURN '{}'; END $$;
		CREATE VIEW public.v AS SELECT public.take() AS headers`)
	_, err := o.Collect(t.Context(), pool, time.Hour, pgx.Identifier{"public", "v"})
	require.ErrorContains(t, err, "read-only transaction")
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.taken"))
}

// A row goes back from an archive that is read after the table. Each may be read without it.
func TestCollect_ARowThatIsMovedMeanwhileKeepsItsObject(t *testing.T) {
	t.Parallel()
	dir := madeStore(t)
	o, pool := made(t, outbox.Config{ClaimAbove: 10, Claims: dir})
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(t.Context(), tx, outbox.Record{Type: "a", Payload: long})
	}))
	require.Len(t, objects(t, dir, 2*time.Hour), 1)
	pgtest.Exec(t, pool, `CREATE TABLE public.kept AS SELECT * FROM public.outbox; DELETE FROM public.outbox`)

	back, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = back.Exec(t.Context(), "LOCK TABLE public.kept IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	ended := make(chan error, 1)
	var removed claim.Removed
	go func() {
		var err error
		removed, err = o.Collect(t.Context(), pool, time.Hour, pgx.Identifier{"public", "kept"})
		ended <- err
	}()
	require.Eventually(t, func() bool {
		return pgtest.Value[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'public.kept'::regclass
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`)
	}, time.Minute, time.Millisecond, "the collection has read the table, and waits for the archive")
	_, err = back.Exec(t.Context(), `WITH back AS (DELETE FROM public.kept RETURNING *) INSERT INTO public.outbox OVERRIDING SYSTEM VALUE SELECT * FROM back`)
	require.NoError(t, err)
	require.NoError(t, back.Commit(t.Context()))
	require.NoError(t, <-ended)
	require.Zero(t, removed)
	require.Len(t, objects(t, dir, 2*time.Hour), 1)
}
