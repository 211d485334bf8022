package main_test

import (
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestTail_FollowsRecordsAndDecisionsOverARestart(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 4)
	receiver := newPicky(t, "4")
	config := processes(t, map[string]string{"a": "webhook: {url: '" + receiver.URL + "'}"})
	code, stdout, stderr := do(t, address, "tail", "a", "-c", config, "--once")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "new        a has not run yet")
	code, _, _ = do(t, address, "run", "--drain", "-c", config)
	require.Equal(t, 3, code)
	code, stdout, stderr = do(t, address, "tail", "a", "-c", config, "--once", "-n", "2")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	const unknown = "-            "
	failed := pgtest.Value[time.Time](t, pool, "SELECT last_failed_at FROM public.cursor").UTC().Format("15:04:05.000 ")
	require.True(t, strings.HasPrefix(lines[0], unknown+"delivered  record 2, created "), "no time is known: %s", lines[0])
	require.True(t, strings.HasPrefix(lines[1], unknown+"delivered  record 3, created "), lines[1])
	require.True(t, strings.HasPrefix(lines[2], failed+"failed     record 4, attempt 1: post to"), "the time of the attempt: %s", lines[2])
	require.NotContains(t, stdout, "customer")
	code, stdout, stderr = do(t, address, "tail", "a", "-c", config, "--once", "-n", "1", "--payload", "--json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `{"at":null,"what":"delivered","record_id":"3"`)
	require.Contains(t, stdout, `\"customer\":\"c3\"`)

	between, through := linked(t, address)
	p := start(t, through, "tail", "a", "-c", config, "-n", "0")
	p.stdout.until(t, 1, "failed     record 4")
	code, _, stderr = do(t, address, "skip", "a", "--reason=a test")
	require.Zero(t, code, stderr)
	p.stdout.until(t, 1, "passed     record 4")
	p.stdout.until(t, 1, "skip       record 4, by ")
	back := between.Away()
	p.stdout.until(t, 1, "away       the database does not answer")
	insert(t, pool, 2)
	code, _, stderr = do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	back()
	p.stdout.until(t, 1, unknown+"delivered  record 6")
	p.stdout.until(t, 1, "back ")
	code, _, stderr = do(t, address, "seek", "a", "--to-id=5", "-c", config, "--reason=again")
	require.Zero(t, code, stderr)
	p.stdout.until(t, 1, "seek ")
	code, _, stderr = do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	p.stdout.until(t, 2, "delivered  record 6")
	p.signal(syscall.SIGINT)
	require.Zero(t, p.wait())
	require.NotContains(t, p.stdout.String(), "delivered  record 4")
	require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3} delivered  record 6`, p.stdout.String(), "it was seen")
	require.Equal(t, 2, strings.Count(p.stdout.String(), "delivered  record 5"), p.stdout.String())
}

// linked is a network to the database that can be away.
func linked(t testing.TB, address string) (*link.Link, string) {
	t.Helper()
	through, err := url.Parse(address)
	require.NoError(t, err)
	l, err := link.Listen(through.Host)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	through.Host = l.Addr()
	return l, through.String()
}

func TestTail_WrongUse(t *testing.T) {
	t.Parallel()
	address, _ := database(t, 1)
	config := processes(t, map[string]string{"a": "stdout: {}"})
	for _, args := range [][]string{{"tail", "a"}, {"tail", "b", "-c", config}, {"tail", "a", "-c", config, "-n", "-1"}} {
		code, _, _ := do(t, address, args...)
		require.Equal(t, 2, code, args)
	}
	code, stdout, stderr := do(t, address, "tail", "a", "-c", config, "--once")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "a has not run yet")
}
