package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// named is a file with one process on the bookings.
func named(t testing.TB, process, more string) string {
	t.Helper()
	return file(t, fmt.Sprintf("processes: {%s: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms%s}}", process, more))
}

// must is do of a command that succeeds.
func must(t testing.TB, address string, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := do(t, address, args...)
	require.Zero(t, code, "%v: %s", args, stderr)
	return stdout
}

func TestProcessRename_ARenamedProcessSendsNothingTwice(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	before, after := named(t, "a", ", start: beginning"), named(t, "b", "")
	require.Len(t, ids(t, must(t, address, "run", "--drain", "-c", before)), 5)

	for _, args := range [][]string{{"run", "-c", after}, {"run", "--drain", "-c", after}} {
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, 2, code, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "`start: beginning` sends 5 records, `start: end` sends 0 of them")
		require.Contains(t, stderr, "`ordered-dispatcher process rename OLD b`")
		require.Contains(t, stderr, "Cursors whose process is not in this file: a")
		require.NotContains(t, stderr, "trying again")
	}
	code, stdout, _ := do(t, address, "doctor", "-c", after)
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "the file does not say where it starts")
	require.Contains(t, stdout, "process rename OLD b")

	code, _, stderr := do(t, address, "process", "rename", "a", "b", "-c", before)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "rename the process in the file first")
	require.Contains(t, must(t, address, "process", "rename", "a", "b", "-c", after, "--dry-run"), "a would be called b. It would stay at at.int:")
	require.Contains(t, must(t, address, "process", "rename", "a", "b", "-c", after, "--reason=clearer"), "a is called b now")
	insert(t, pool, 1)
	require.Equal(t, []string{"6"}, ids(t, must(t, address, "run", "--drain", "-c", after)))
	require.Contains(t, must(t, address, "history", "b"), "clearer")

	code, stdout, stderr = do(t, address, "run", "--drain", "-c", before)
	require.Equal(t, 1, code)
	require.Empty(t, stdout, "the old file starts nothing over")
	require.Contains(t, stderr, `process \"a\": the cursor was renamed to \"b\". Give the process that name in its configuration, and start the worker again.`)
	require.NotContains(t, stderr, "make cursor")
	_, stdout, _ = do(t, address, "status", "a", "-c", before)
	require.NotContains(t, stdout, "make cursor")
}

func TestProcessForget_LetsAProcessStartAnew(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	config := named(t, "a", ", start: beginning")
	must(t, address, "run", "--drain", "-c", config)
	execute(t, pool, "DELETE FROM public.cursor")
	code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 1, code)
	require.Empty(t, stdout, "a start that was left in the file sends nothing twice")
	require.Contains(t, stderr, "ordered-dispatcher process forget a")

	code, _, stderr = do(t, address, "process", "forget", "a")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--reason")
	must(t, address, "process", "forget", "a", "--reason=their restore")
	require.Len(t, ids(t, must(t, address, "run", "--drain", "-c", config)), 3)
	code, _, stderr = do(t, address, "process", "forget", "typo", "--reason=x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `process "typo" has no cursor`)
	code, _, stderr = do(t, address, "process", "forget", "aa", "--reason=x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `process "aa" has no cursor: did you mean a? These processes have one: a`)
	require.NotContains(t, stderr, "pause")
}

func TestProcessForget_NamesTheWorkerThatRunsIt(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 1)
	config := named(t, "a", ", start: beginning")
	must(t, address, "run", "--drain", "-c", config)
	require.NotContains(t, must(t, address, "process", "forget", "a", "--dry-run"), "A worker runs it")
	worker := start(t, address, "run", "-c", config)
	worker.stderr.until(t, 1, "caught up")
	require.Eventually(t, func() bool { // once it has announced itself
		_, stdout, _ := do(t, address, "process", "forget", "a", "--dry-run")
		return strings.Contains(strings.Join(strings.Fields(stdout), " "), "A worker runs it now: it would deliver nothing more until it is started again, and begins there then")
	}, patience, 100*time.Millisecond)
	must(t, address, "process", "forget", "a", "--reason=a test")
	worker.stderr.until(t, 1, "cannot work")
	require.Contains(t, strings.Join(strings.Fields(must(t, address, "status", "-c", config)), " "), "and a worker runs it: one that ran then delivers nothing until it is started again")
	execute(t, pool, "INSERT INTO public.bookings (customer) VALUES ('c')")
	worker.stop()
	require.Empty(t, worker.stdout.String())
	require.Len(t, ids(t, must(t, address, "run", "--drain", "-c", config)), 2)
}

func TestDecide_BeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	silent := named(t, "a", "")
	require.Contains(t, must(t, address, "pause", "a", "-c", silent, "--dry-run"), "has not run yet, and would be paused at a place that is not known yet")
	require.Contains(t, must(t, address, "pause", "a", "-c", silent), "has not run yet, and is paused at a place that is not known yet")
	require.Contains(t, must(t, address, "status", "-c", silent), "paused")
	require.Contains(t, must(t, address, "resume", "a", "-c", silent), "starts at the `start` of the file")
	code, _, stderr := do(t, address, "run", "--drain", "-c", silent)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "sends 5 records")
	require.Contains(t, must(t, address, "seek", "a", "-c", silent, "--to-id=4", "--reason=the first three were sent by hand"), "a starts at")
	require.Equal(t, []string{"4", "5"}, ids(t, must(t, address, "run", "--drain", "-c", silent)))

	other := named(t, "b", "")
	seek := []string{"seek", "b", "-c", other, "--to-id=5", "--reason=x"}
	const leftOut = "4 records are passed over for good; `start` in the file no longer counts"
	would := must(t, address, append(seek, "--dry-run")...)
	require.Regexp(t, `4 records would be passed\s+over for good; .start. in the file would no longer count`, would)
	require.Equal(t, 1+4, strings.Count(would, "at.int:"), "it lists them")
	require.Contains(t, must(t, address, seek...), leftOut)
	require.Equal(t, []string{"5"}, ids(t, must(t, address, "run", "--drain", "-c", other)))

	end := named(t, "c", ", start: end")
	paused := must(t, address, "pause", "c", "-c", end)
	require.Contains(t, paused, ": 5 records are passed over for good: nothing is delivered until")
	require.NotContains(t, paused, "lost")
	insert(t, pool, 1)
	must(t, address, "resume", "c")
	require.Equal(t, []string{"6"}, ids(t, must(t, address, "run", "--drain", "-c", end)), "it starts where the end was when it was paused")

	for _, verb := range []string{"resume", "retry"} {
		code, _, stderr = do(t, address, verb, "d", "-c", named(t, "d", ""))
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "d has not run yet")
	}
	code, _, stderr = do(t, address, "pause", "typo")
	require.Equal(t, 2, code, "without the file, a typing error makes no cursor")
	require.Contains(t, stderr, "`pause` and `seek` with -c FILE make it before its first run")
}

// TestRun_WhereACursorMayBeLostNobodyProposesAStartAlone: `start: end` passes over what came since.
func TestRun_WhereACursorMayBeLostNobodyProposesAStartAlone(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	execute(t, pool, "INSERT INTO public.cursor (process_name, position, epoch) VALUES ('old', '', 28000000000001)") // as after a restore
	silent := named(t, "a", "")
	code, _, stderr := do(t, address, "run", "--drain", "-c", silent)
	require.Equal(t, 2, code)
	const lost, seek = "if the process has delivered before, its cursor is lost", "ordered-dispatcher seek a --to-id ID"
	require.Contains(t, stderr, lost)
	require.Contains(t, stderr, seek)
	require.Contains(t, stderr, "If it has never run, say where it starts: `start: beginning` sends 5 records")
	for _, config := range []string{silent, named(t, "a", ", start: end")} {
		_, stdout, _ := do(t, address, "doctor", "-c", config)
		require.Contains(t, stdout, "if it has delivered before, its cursor is lost")
		require.Contains(t, stdout, seek)
		require.NotContains(t, stdout, "start: end")
		status := must(t, address, "status", "-c", config)
		require.Contains(t, status, lost)
		require.Contains(t, status, "`ordered-dispatcher process rename OLD a`. Cursors whose process is not in this file: old")
	}
}

// TestPause_OfACursorThatMayBeLostSaysSo: what the process had delivered may be behind where it starts.
func TestPause_OfACursorThatMayBeLostSaysSo(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 5)
	execute(t, pool, "INSERT INTO public.cursor (process_name, position, epoch) VALUES ('other', '', 28000000000001)") // as after a restore
	paused := must(t, address, "pause", "a", "-c", named(t, "a", ", start: end"))
	require.Contains(t, paused, ": 5 records are passed over for good: nothing is delivered until")
	require.Contains(t, paused, "if the process has delivered before, its cursor is lost. Before it goes on, compare what its receiver has with the table")
}
