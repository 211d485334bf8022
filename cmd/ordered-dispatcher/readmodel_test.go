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
	code, stdout, stderr := do(t, address, compare...)
	require.Equal(t, 1, code)
	require.Equal(t, "ordered-dispatcher: the two versions differ\n", stderr)
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
	code, _, stderr = do(t, address, append(change, "--timeout=50ms")...)
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

// TestVersions_AnErrorNamesTheVersionAndTheStep: of a version without a cursor, and of a statement that fails.
func TestVersions_AnErrorNamesTheVersionAndTheStep(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 2)
	version := func(name string) string {
		return name + ": {source: {table: public.bookings}, start: beginning, sink: {sql: {statement: SELECT 1}}}"
	}
	config := file(t, "processes: {"+version("v1")+"}")
	must(t, address, "run", "--drain", "-c", config)
	config = file(t, "processes: {"+version("v1")+", "+version("v2")+", "+version("v3")+"}")
	const unborn = "has not run yet: start `ordered-dispatcher run`, and wait until it has caught up"
	pair := func(verb, old, recent string, more ...string) (int, string, string) {
		return do(t, address, append([]string{"process", verb, old, recent, "-c", config}, more...)...)
	}
	change := []string{"--reason=x", "--sql=CREATE VIEW b AS SELECT 1"}
	for _, names := range [][3]string{{"v1", "v2", "v2"}, {"v2", "v1", "v2"}, {"v2", "v3", "v3"}} {
		for verb, more := range map[string][]string{"compare": {"--sql=SELECT 1"}, "switch": change} {
			code, _, stderr := pair(verb, names[0], names[1], more...)
			require.Equal(t, 1, code)
			require.Equal(t, "ordered-dispatcher: "+names[2]+" "+unborn+"\n", stderr, names)
		}
	}
	_, _, stderr := pair("switch", "v1", "v2", append(change, "--dry-run")...)
	require.Contains(t, stderr, "v2 "+unborn)

	must(t, address, "run", "--drain", "-c", config)
	code, _, stderr := pair("switch", "v1", "v2", change...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "write the schema before each name, as in public.balance")
	require.NotContains(t, stderr, "grants")
	_, _, stderr = pair("switch", "v1", "v2", "--reason=x", "--sql=CREATE VIEW public.b AS TABLE public.nowhere")
	require.Contains(t, stderr, `relation "public.nowhere" does not exist`)
	require.NotContains(t, stderr, "migrate up", "it is not the table of the cursors that is missing")

	must(t, address, "pause", "v1", "-c", config)
	code, stdout, stderr := pair("switch", "v1", "v2", "--reason=x", "--sql=CREATE VIEW public.b AS SELECT 1")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "v2 goes on. v1 stays paused")
	require.NotContains(t, stdout, "Both go on")
}
