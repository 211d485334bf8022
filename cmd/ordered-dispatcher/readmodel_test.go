package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// blocks returns the code of a page in one language, in its order. Code within a list is indented.
func blocks(t *testing.T, path, language string) (all []string) {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, found := range regexp.MustCompile("(?s)\n *```"+language+"\n(.*?)\n *```").FindAllStringSubmatch(string(page), -1) {
		all = append(all, found[1])
	}
	require.NotEmpty(t, all)
	return all
}

// TestReadModels_ThePageBuildsComparesAndSwitches runs what docs/read-models.md says, in its order.
func TestReadModels_ThePageBuildsComparesAndSwitches(t *testing.T) {
	t.Parallel()
	const page = "../../docs/read-models.md"
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
	for _, sql := range blocks(t, page, "sql") {
		pgtest.Exec(t, pool, sql)
	}
	old := blocks(t, page, "yaml")[0]
	_, process, _ := strings.Cut(old, "processes:\n")
	config := file(t, old+"\n"+strings.NewReplacer("v1", "v2").Replace(process)+"\n")
	credit := `INSERT INTO public.outbox (type, payload) VALUES ('account.credited', '{"account": "ada", "cents": 5}'), ('account.credited', '{"account": "bob", "cents": 7}'), ('another', '{}')`
	pgtest.Exec(t, pool, credit)
	must(t, address, "run", "--drain", "-c", config)

	command := func(line string) []string {
		_, args, found := strings.Cut(line, "$ ordered-dispatcher ")
		require.True(t, found)
		var words []string
		for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(strings.ReplaceAll(args, "dispatcher.yaml", config), -1) {
			words = append(words, strings.Trim(word, "'"))
		}
		return words
	}
	console := blocks(t, page, "console")
	compare, change := command(console[0]), command(console[1])
	require.Contains(t, must(t, address, compare...), "no row differs, at ")
	require.Contains(t, must(t, address, append(compare, "--hold")...), "no row differs, at ")
	pgtest.Exec(t, pool, "UPDATE v2.balance SET cents = 6 WHERE account = 'ada'")
	code, stdout, _ := do(t, address, compare...)
	require.Equal(t, 1, code)
	require.Regexp(t, `(?s)account +cents\n.*ada +5\n.*ada +6\n.*the versions differ, at `, stdout)

	require.Contains(t, must(t, address, append(change, "--dry-run")...), "dry run, nothing is changed. balances@v2 is at ")
	definition := func() (text string) {
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT pg_catalog.pg_get_viewdef('public.balance')").Scan(&text))
		return text
	}
	require.Contains(t, definition(), "v1.balance")
	require.Contains(t, must(t, address, change...), "readers use balances@v2 now, which is at ")
	require.Contains(t, definition(), "v2.balance")
	require.Contains(t, must(t, address, "history", "balances@v2"), "switched_to")
	require.Contains(t, must(t, address, "history", "balances@v1"), "cents, not euros")

	pgtest.Exec(t, pool, credit)
	code, _, stderr := do(t, address, append(change, "--timeout=50ms")...)
	require.Zero(t, code, "neither has applied it: %s", stderr)
	back := strings.Split(strings.NewReplacer("v1", "v2", "v2", "v1").Replace(strings.Join(change, "\x00")), "\x00")
	back[len(back)-1] = "CREATE OR REPLACE VIEW public.nowhere.balance AS SELECT 1"
	code, _, stderr = do(t, address, back...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "cross-database references are not implemented")
	require.Contains(t, definition(), "v2.balance", "a statement that fails changes nothing")
	code, _, stderr = do(t, address, "process", "switch", "balances@v1", "typo", "-c", config, "--sql=x", "--reason=x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `"typo"`)
}
