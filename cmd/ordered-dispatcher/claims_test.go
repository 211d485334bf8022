package main_test

import (
	"context"
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
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

// claimed is an outbox that puts payloads of more than 100 bytes into a directory.
func claimed(t *testing.T, address string, pool *pgxpool.Pool) (o *outbox.Outbox, dir string) {
	t.Helper()
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
	dir = t.TempDir()
	require.NoError(t, claim.Dir(dir).Create())
	o, err := outbox.New(outbox.Config{ClaimAbove: 100, Claims: claim.Dir(dir)})
	require.NoError(t, err)
	return o, dir
}

// resolving is a process that reads the outbox from its beginning, and resolves claim checks.
func resolving(t *testing.T, name, dir string) string {
	t.Helper()
	return file(t, "processes: {"+name+": {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, start: beginning, claims: "+dir+"}}")
}

// forget makes room for the next process that reads the same table.
func forget(t *testing.T, address, process string) {
	t.Helper()
	must(t, address, "process", "forget", process, "--reason=the next one reads the same table")
}

// objectFiles are the paths of all objects.
func objectFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, claim.Dir(dir).List(t.Context(), func(o claim.Object) error {
		paths = append(paths, filepath.Join(dir, o.Name[:2], o.Name))
		return nil
	}))
	return paths
}

// large is a payload that goes to the store.
func large(seat string) map[string]string {
	return map[string]string{"seat": seat, "ticket": strings.Repeat("ticket ", 100)}
}

// bookLarge books a seat with a large record in one transaction. The seat is found to be taken at the COMMIT.
func bookLarge(ctx context.Context, o *outbox.Outbox, pool *pgxpool.Pool, seat string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO public.seat VALUES ($1)", seat); err != nil {
			return err
		}
		return o.Add(ctx, tx, outbox.Record{Type: "booked", Payload: large(seat)})
	})
}

// The producer reads why its transaction failed. The object that it had put belongs to no row: no receiver gets it,
// and Collect removes it and nothing else.
func TestClaims_ATransactionThatIsRolledBackLeavesAnObjectAndNothingElse(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	o, dir := claimed(t, address, pool)
	pgtest.Exec(t, pool, "CREATE TABLE public.seat (name text CONSTRAINT taken UNIQUE DEFERRABLE INITIALLY DEFERRED)")
	require.NoError(t, bookLarge(t.Context(), o, pool, "12A"))
	require.ErrorContains(t, bookLarge(t.Context(), o, pool, "12A"), `duplicate key value violates unique constraint "taken"`)
	require.NoError(t, bookLarge(t.Context(), o, pool, "12B"))
	require.Len(t, objectFiles(t, dir), 3)
	require.Equal(t, 2, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.outbox"))

	seats := func(process string) string {
		var all []string
		for line := range strings.Lines(must(t, address, "run", "--drain", "-c", resolving(t, process, dir))) {
			require.Contains(t, line, strings.Repeat("ticket ", 100))
			_, seat, _ := strings.Cut(line, `"seat":"`)
			all = append(all, seat[:3])
		}
		forget(t, address, process)
		return strings.Join(all, " ")
	}
	require.Equal(t, "12A 12B", seats("before"))
	for _, path := range objectFiles(t, dir) {
		past := time.Now().Add(-2 * time.Hour)
		require.NoError(t, os.Chtimes(path, past, past))
	}
	removed, err := o.Collect(t.Context(), pool, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, removed.Objects)
	require.Equal(t, "12A 12B", seats("after"), "each row still has its object")
}

// The process halts at the record, and names the object and its fault. It goes on once the object is back.
func TestClaims_AnObjectThatIsGoneOrChangedHaltsUntilItIsBack(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	o, dir := claimed(t, address, pool)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Add(t.Context(), tx, outbox.Record{Type: "first", Payload: 1}, outbox.Record{Type: "second", Payload: large("12A")}, outbox.Record{Type: "third", Payload: 3})
	}))
	paths := objectFiles(t, dir)
	require.Len(t, paths, 1)
	whole, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	write := func(content string) { require.NoError(t, os.WriteFile(paths[0], []byte(content), 0o600)) }

	for i, c := range []struct {
		breaks func()
		want   string
	}{
		{func() { require.NoError(t, os.Remove(paths[0])) }, "the object is missing from its store"},
		{func() { write(string(whole[:len(whole)-1])) }, "the object is not the one that was stored: its size or SHA-256 differs"},
		{func() { write(strings.Replace(string(whole), "12A", "13A", 1)) }, "the object is not the one that was stored: its size or SHA-256 differs"},
	} {
		c.breaks()
		process := fmt.Sprint("p", i)
		config := resolving(t, process, dir)
		code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
		require.Equal(t, 3, code, stderr)
		require.Equal(t, 1, strings.Count(stdout, "\n"), "nothing passes the record: %s", stdout)
		require.Contains(t, stderr, "resolve its claim check "+filepath.Base(paths[0])+": "+c.want)
		_, status, _ := do(t, address, "status", process)
		require.Contains(t, status, c.want)

		write(string(whole))
		must(t, address, "retry", process, "--reason=the object is back")
		out := must(t, address, "run", "--drain", "-c", config)
		require.Equal(t, 2, strings.Count(out, "\n"), out)
		require.Less(t, strings.Index(out, `"payload":{"seat":"12A"`), strings.Index(out, `"type":"third"`))
		require.Contains(t, out, `"payload":{"seat":"12A"`)
		forget(t, address, process)
	}
}
