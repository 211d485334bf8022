package main_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestShow_PrintsWhatAReceiverLacks(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 3)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	several := processes(t, map[string]string{"a": "stdout: {}", "b": "stdout: {}"})
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"show", "a", "-c", config}, 2, "--after=SEQUENCE"},
		{[]string{"show", "--after=1", "-c", config}, 2, "--after needs the name of a process"},
		{[]string{"show", "a", "--after=1", "--id=2", "-c", config}, 2, "can't be used together"},
		{[]string{"show", "--id=", "-c", config}, 2, "is empty"},
		{[]string{"show", "--key=x", "a", "-c", config}, 1, "name its column in source.columns.key"},
		{[]string{"show", "--key=x", "-c", several}, 1, "name its column in source.columns.key"},
		{[]string{"show", "--id=99", "-c", config}, 1, "no record was found"},
		{[]string{"show", "--id=x", "-c", config}, 1, "no record was found"},
		{[]string{"show", "a", "--after=1"}, 2, "name it with -c FILE"},
		{[]string{"show", "a", "--after=-1", "-c", config}, 2, "--after must not be negative"},
		{[]string{"show", "a", "--after=1", "--limit=0", "-c", config}, 2, "--limit must be between"},
		{[]string{"show", "b", "--after=1", "-c", config}, 2, `there is no process "b"`},
		{[]string{"show", "a", "--after=1", "-c", config}, 2, "a has not run yet"},
	} {
		code, stdout, stderr := do(t, address, c.args...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr+stdout, c.stderr)
		if c.code == 2 {
			require.Empty(t, stdout)
		}
	}
	code, _, stderr := do(t, address, "run", "-c", config, "--drain")
	require.Zero(t, code, stderr)
	code, stdout, stderr := do(t, address, "show", "a", "--after=1", "--limit=1", "-c", config)
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"ordered-dedup-key":"public.bookings/2/`)
	require.Contains(t, lines[1], `{"end":{"from":"`)
	code, stdout, _ = do(t, address, "show", "a", "--after=3", "-c", config)
	require.Zero(t, code)
	require.Contains(t, stdout, `{"end":{"sequence":"3"`)
}

// TestShow_SaysWhereARecordIs: in a process that halted at the third of five records, in one that put it aside, in one
// that began at the end, and in one that never ran.
func TestShow_SaysWhereARecordIs(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	receiver := newPicky(t, "3")
	source := "source: {table: public.bookings, columns: {key: customer}}"
	sink := "sink: {webhook: {url: '" + receiver.URL + "'}}"
	config := file(t, "processes:\n"+
		"  halts: {"+source+", "+sink+", start: beginning}\n"+
		"  aside: {"+source+", "+sink+", start: beginning, on_poison: dead_letter}\n"+
		"  late: {"+source+", "+sink+", start: end}\n")
	show := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := do(t, address, append([]string{"show", "-c", config}, args...)...)
		require.Zero(t, code, stderr)
		return strings.Join(strings.Fields(stdout), " ")
	}
	require.Contains(t, show("--id=3"), "late: record 3 waits: the process has not run yet")
	code, _, _ := do(t, address, "run", "-c", config, "--drain")
	require.Equal(t, 3, code)
	require.Contains(t, show("halts", "--id=1"), "record 1 was delivered; the cursor is 1 record after it")
	require.Contains(t, show("halts", "--id=2"), "record 2 was delivered; the cursor is at it")
	failing := show("halts", "--key=c3")
	require.Contains(t, failing, "record 3 fails, 1 attempt since")
	require.NotContains(t, failing, "  payload ")
	require.Contains(t, show("halts", "--id=3", "--payload"), `payload {"id":3`)
	require.Contains(t, show("halts", "--id=5"), "record 5 waits, 2 records before it; the process is halted, at record 3")
	_, key, _ := strings.Cut(failing, "dedup key ")
	key, _, _ = strings.Cut(key, " ")
	everywhere := show("--dedup-key=" + key)
	require.Contains(t, everywhere, "halts: record 3 fails")
	require.Contains(t, everywhere, "aside: record 3 is dead letter 1, after 1 attempt")
	require.Contains(t, everywhere, "late: record 3 is not delivered: it comes before the place at which the process began")

	code, _, stderr := do(t, address, "skip", "halts", "--reason=a test")
	require.Zero(t, code, stderr)
	require.Contains(t, show("halts", "--id=3"), "was passed over by skip")
	require.Contains(t, show("halts", "--id=4"), "record 4 is the next one")
	require.Contains(t, show("halts", "--id=4", "--json"), `"standing":"next","between":"0"`)
	_, err := pool.Exec(t.Context(), "DELETE FROM public.bookings WHERE id = 3")
	require.NoError(t, err)
	gone := show("--id=3")
	require.Contains(t, gone, "aside: record 3 is dead letter 1, after 1 attempt")
	require.Contains(t, gone, "its row is gone")
	require.NotContains(t, gone, "halts:")
}

// A transaction that may still insert a record before this one is named.
func TestShow_NamesWhatTheFenceWaitsFor(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 1)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	code, _, stderr := do(t, address, "run", "-c", config, "--drain")
	require.Zero(t, code, stderr)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "INSERT INTO public.bookings (customer) VALUES ('slow')")
	require.NoError(t, err)
	insert(t, pool, 1)
	code, stdout, stderr := do(t, address, "show", "a", "--id=3", "-c", config)
	require.Zero(t, code, stderr)
	require.Contains(t, strings.Join(strings.Fields(stdout), " "), "record 3 waits, and is the next one: pid ")
}

func TestShow_NamesTheStepOfARoleThatMayNotReadTheTable(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 1)
	config := file(t, "processes: {a: {start: beginning, source: {table: public.bookings, columns: {key: customer}}, sink: {stdout: {}}}}")
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	role := pgtest.Role(t, pool, "support_", "LOGIN PASSWORD 'secret'")
	code, stdout, stderr := do(t, address, "grants", "-c", config, "--role", "worker", "--operator", role)
	require.Zero(t, code, stderr)
	execute(t, pool, stdout[strings.LastIndex(stdout, "-- What role"):])
	code, _, stderr = do(t, pgtest.As(t, address, role, "secret"), "show", "--key=Ada", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "permission denied for table bookings")
	require.Contains(t, stderr, "this reads what records hold: connect as the worker's role")
}

func TestShow_SaysThatAProcessCouldNotBeAsked(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	config := file(t, "processes: {a: {source: {table: public.bookings}, sink: {stdout: {}}}, b: {source: {table: public.gone}, sink: {stdout: {}}}}")
	code, stdout, stderr := do(t, address, "show", "--id=99", "-c", config)
	require.Equal(t, 1, code)
	require.Contains(t, stdout+stderr, "gone")
	require.Contains(t, stderr, "no record was found in the processes that could be asked")
}
