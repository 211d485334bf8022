package daemon_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The commands of the page put back what each row was when it was written last, whatever its columns hold.
func TestPrune_RowsThatGoBackFromFilesByTheCommandsOfThePageAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	psql := pgtest.Require(t, "psql")
	page, err := os.ReadFile("../../../docs/retention.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "### Rows from files")
	require.True(t, found)
	block := func(kind string) string {
		_, text, found := strings.Cut(section, "```"+kind+"\n")
		require.True(t, found)
		text, _, _ = strings.Cut(text, "```")
		return text
	}

	dir := t.TempDir()
	pool, config := aged(t, stdoutProcess, "keep: 1h, mode: files, directory: '"+dir+"', batch: 2", 5)
	exec(t, pool, `ALTER TABLE public.bookings ADD amount numeric DEFAULT 1.50, ADD doc json DEFAULT E'{"a":\r\n1.0,\t"a": "1.0"}', ADD part float8 DEFAULT 0.1,
			ADD bytes bytea DEFAULT '\x00ff', ADD local timestamp DEFAULT '2026-01-01 00:00:00.000001', ADD tags text[] DEFAULT '{"a b",NULL}';
		UPDATE public.bookings SET customer = E'\\.\n\x01\x02\t"''\\n,é' WHERE id < 5`)
	before := oldRows(t, pool)[:4]
	for i, row := range before {
		before[i] = strings.ReplaceAll(row, "\r\n", "  ") // a row is a line
	}
	exec(t, pool, "UPDATE public.bookings SET customer = 'earlier' WHERE id = 3")
	pruned(t, config)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)))
	}
	exec(t, pool, `INSERT INTO public.bookings (id, created_at, customer) OVERRIDING SYSTEM VALUE
		VALUES (3, '2026-01-01 00:03Z', E'\\.\n\x01\x02\t"''\\n,é')`)
	pruned(t, config)
	require.Equal(t, 3, staying(t, pool))

	work := t.TempDir()
	shell := osexec.Command("sh", "-ec", strings.ReplaceAll(block("sh"), "/srv/archive", dir))
	shell.Dir = work
	out, err := shell.CombinedOutput()
	require.NoError(t, err, string(out))
	const more = "amount, doc, part, bytes, local, tags"
	paste(t, psql, work, strings.NewReplacer("r.customer", "r.customer, "+more, "customer)", "customer, "+more+")").Replace(block("sql")))
	require.Equal(t, before, oldRows(t, pool))
	require.Len(t, before, 4)
}
