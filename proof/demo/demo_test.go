package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// testDir is there as long as the tests run: see TestMain.
var testDir string

// program builds the command once for all tests.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(testDir, "ordered-dispatcher")
	out, err := exec.Command("go", "build", "-o", path, "github.com/ordered-dispatcher/ordered-dispatcher/cmd/ordered-dispatcher").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return path, nil
})

// output is what a demo has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen func(text string) // told after each write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if o.seen != nil {
		o.seen(o.text.String())
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// testConfig is a short demo with the real command, in the test's own database.
func testConfig(t *testing.T, out *output) Config {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	return Config{DatabaseURL: pgtest.URL(t), Executable: path, Duration: 3 * time.Second, Output: out}
}

// requireNothingLeft looks for the schema in the test's database, and for the workers that the output names.
func requireNothingLeft(t *testing.T, pool *pgxpool.Pool, out *output) {
	t.Helper()
	var schemas int
	err := pool.QueryRow(context.Background(),
		`SELECT count(*) FROM pg_catalog.pg_namespace WHERE starts_with(nspname, $1) LIMIT 1`, schemaPrefix).Scan(&schemas)
	require.NoError(t, err)
	require.Zero(t, schemas)
	requireNobodyLeft(t, out)
}

func requireNobodyLeft(t *testing.T, out *output) {
	t.Helper()
	for _, match := range regexp.MustCompile(`process (\d+)`).FindAllStringSubmatch(out.String(), -1) {
		pid, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d", pid)
	}
}

func TestRun_EndsWithAGoodVerdict(t *testing.T) {
	t.Parallel()
	out := &output{}
	pool := pgtest.Database(t)
	require.NoError(t, Run(t.Context(), testConfig(t, out)), out)
	for _, line := range []string{
		`PostgreSQL +the server of --database`,
		`kill -9 \d+, worker [AB], with booking \d+ sent and not yet acknowledged`,
		`worker [AB] takes over after .* in epoch \d`,
		`committed +[1-9]\d*`,
		`lost +0\n`,
		`out of order +0\n`,
		`duplicates +1\n    booking \d+ \(sequence \d+\): attempt in flight when worker [AB] was killed\n`,
		`From commit to delivery: p50 .*, p99 .*, longest .*`,
		`GOOD: every committed booking arrived`,
	} {
		require.Regexp(t, line, out.String())
	}
	requireNothingLeft(t, pool, out)
}

func TestRun_StartsAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	out := &output{}
	config := testConfig(t, out)
	config.DatabaseURL, config.Duration = "", time.Second
	require.NoError(t, Run(t.Context(), config), out)
	port := regexp.MustCompile(`up on 127\.0\.0\.1:(\d+)`).FindStringSubmatch(out.String())
	require.NotNil(t, port, out)
	_, err := net.Dial("tcp", "127.0.0.1:"+port[1])
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	requireNobodyLeft(t, out)
}

// delivering is the output of a demo in full swing.
var delivering = regexp.MustCompile(`delivered +[1-9]`)

func TestRun_LeavesNothingWhenInterrupted(t *testing.T) {
	t.Parallel()
	for moment, seen := range map[string]*regexp.Regexp{
		"while the tables are made":     regexp.MustCompile(`Tables`),
		"while the workers are started": regexp.MustCompile(`SMS service`),
		"while bookings are delivered":  delivering,
		"after the worker was killed":   regexp.MustCompile(`kill -9`),
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			out := &output{seen: func(text string) {
				if seen.MatchString(text) {
					interrupt()
				}
			}}
			pool := pgtest.Database(t)
			config := testConfig(t, out)
			require.EqualError(t, Run(ctx, config), "interrupted; nothing of the demo is left behind")
			require.NotContains(t, out.String(), "Verdict")
			requireNothingLeft(t, pool, out)
		})
	}
}

func TestRun_FurtherSignalsDoNotStopTheCleanUp(t *testing.T) {
	t.Parallel()
	config := testConfig(t, nil)
	executable, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), executable, "demo", config.DatabaseURL, config.Executable)
	signals := []os.Signal{os.Interrupt, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	out := &output{seen: func(text string) {
		if !delivering.MatchString(text) {
			return
		}
		for _, s := range signals {
			_ = cmd.Process.Signal(s)
		}
		signals = nil
	}}
	cmd.Stdout, cmd.Stderr = out, out
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	require.Equal(t, 1, exit.ExitCode(), out)
	require.Contains(t, out.String(), "interrupted; nothing of the demo is left behind")
	requireNothingLeft(t, pgtest.Database(t), out)
}

func TestInterruption_DoesNotHideWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	require.EqualError(t, interruption(errors.Join(context.Canceled, removed(nil))), "interrupted; nothing of the demo is left behind")
	require.EqualError(t, interruption(errors.Join(context.Canceled, removed(errors.New("the schema is still there")))),
		"interrupted: the schema is still there")
}

// script is a worker that does something else.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
	return path
}

func TestRun_ShowsTheLogOfAWorkerThatFails(t *testing.T) {
	t.Parallel()
	out := &output{}
	pool := pgtest.Database(t)
	config := testConfig(t, out)
	config.Executable = script(t, "echo 'the dog ate the configuration' >&2; exit 2\n")
	err := Run(t.Context(), config)
	require.ErrorContains(t, err, "ended by itself (exit status 2); the end of its log:\n    the dog ate the configuration\n")
	require.ErrorContains(t, err, "Correct what the log names")
	requireNothingLeft(t, pool, out)
}

func TestRun_EndsWhenNothingIsDelivered(t *testing.T) {
	t.Parallel()
	out := &output{}
	pool := pgtest.Database(t)
	config := testConfig(t, out)
	config.stall = 2 * time.Second
	config.Executable = script(t, "echo 'still thinking'; exec sleep 60\n")
	err := Run(t.Context(), config)
	require.ErrorContains(t, err, "nothing was delivered for 2s")
	require.ErrorContains(t, err, "still thinking")
	requireNothingLeft(t, pool, out)
}

func TestRun_NamesTheFixForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), Config{DatabaseURL: "postgres://user:secret@127.0.0.1:1/db?sslmode=disable", Output: &output{}})
	require.ErrorContains(t, err, "correct --database, or leave it out")
	require.NotContains(t, err.Error(), "DROP SCHEMA")
	require.NotContains(t, err.Error(), "secret")
	err = Run(t.Context(), Config{DatabaseURL: "postgres://user:se%cret@host/db", Output: &output{}})
	require.ErrorContains(t, err, "--database cannot be read")
	require.NotContains(t, err.Error(), "cret")
}

func TestRun_RefusesAnImpossibleDuration(t *testing.T) {
	t.Parallel()
	require.EqualError(t, Run(t.Context(), Config{Duration: time.Millisecond}),
		"demo configuration: duration must be between 1s and 1h0m0s, got 1ms")
}

func TestEnvironment_GivesTheWorkersWhatOurConnectionRestsOn(t *testing.T) {
	t.Parallel()
	script, err := environment("postgres://ann:it's@host/db?sslmode=disable",
		[]string{"PGSSLMODE=prefer", "PGPASSWORD=old", "LANG=C", "PATH=/bin", "HOME=/home/ann"})
	require.NoError(t, err)
	require.Equal(t, `export PGSSLMODE='prefer'
export PGPASSWORD='old'
export HOME='/home/ann'
export PGUSER='ann'
export PGPASSWORD='it'\''s'
`, script)
}
