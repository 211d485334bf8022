package pglocal

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]version{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": {15, 18},
		"postgres (PostgreSQL) 18.3\n":                           {18, 3},
		"postgres (PostgreSQL) 19beta2\n":                        {19, -1},
	} {
		got, err := parseVersion(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := parseVersion("command not found")
	require.ErrorContains(t, err, `"command not found"`)
	require.Positive(t, version{15, 18}.compare(version{15, 4}))
	require.Positive(t, version{16, 0}.compare(version{15, 18}))
	require.Negative(t, version{19, -1}.compare(version{19, 0}))
}

// fakeInstallation makes a directory with a postgres that says it has this version.
func fakeInstallation(t *testing.T, root, text string) string {
	t.Helper()
	dir := filepath.Join(root, strings.ReplaceAll(text, " ", "_"))
	require.NoError(t, os.Mkdir(dir, 0o755))
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + text + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func TestOnMachine_HighestSuitableVersionThatRuns(t *testing.T) {
	root := publicDir(t)
	dir, err := throwaway.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close(context.Background())) })
	old, low, high := fakeInstallation(t, root, "13.99"), fakeInstallation(t, root, "98.2"), fakeInstallation(t, root, "98.10")
	broken := fakeInstallation(t, root, "99.1")
	require.NoError(t, os.WriteFile(filepath.Join(broken, "postgres"), []byte("#!/bin/sh\nexit 127\n"), 0o755))
	t.Setenv("PATH", strings.Join([]string{broken, old, low, high, os.Getenv("PATH")}, ":"))

	var told bytes.Buffer
	config, err := Config{Log: slog.New(slog.NewTextHandler(&told, nil))}.withDefaults()
	require.NoError(t, err)
	config.major = 0
	found, ok := onMachine(t.Context(), config, dir)
	require.True(t, ok)
	require.Equal(t, high, found.binDir)
	require.Contains(t, told.String(), broken, "what is passed over is named")

	for _, major := range []int{13, 99} {
		config.major = major
		_, ok = onMachine(t.Context(), config, dir)
		require.False(t, ok, major)
	}
}

func TestConfig_EnvironmentChoosesWhereConfigIsSilent(t *testing.T) {
	t.Setenv("PGLOCAL_VERSION", "16")
	t.Setenv("PGLOCAL_EMBEDDED", "1")
	config, err := Config{}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, 16, config.major)
	require.True(t, config.embedded)
	config, err = Config{Version: "14"}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, 14, config.major)

	t.Setenv("PGLOCAL_VERSION", "sixteen")
	t.Setenv("PGLOCAL_EMBEDDED", "perhaps")
	_, err = Config{}.withDefaults()
	require.ErrorContains(t, err, `version "sixteen"`)
	require.ErrorContains(t, err, `PGLOCAL_EMBEDDED="perhaps": give 1 or 0`)
}

// TestStart_FetchesOnceForManyAtOnce is the one test that needs the network. Without it, it is skipped, but not in CI.
func TestStart_FetchesOnceForManyAtOnce(t *testing.T) {
	t.Setenv("PGLOCAL_EMBEDDED", "1")
	t.Setenv("TMPDIR", publicDir(t)) // the library leaves a log file there
	cache := publicDir(t)
	var told syncBuffer
	config := Config{CacheDir: cache, Log: slog.New(slog.NewTextHandler(&told, nil))}
	errs := make(chan error)
	for range 3 {
		go func() { errs <- startAndStop(t.Context(), config) }()
	}
	for range 3 {
		if err := <-errs; err != nil && os.Getenv("CI") == "" && !strings.Contains(told.String(), "using PostgreSQL") {
			t.Skipf("this test fetches PostgreSQL from the network: %v", err)
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 1, strings.Count(told.String(), "fetching "), told.String())
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the programs and the lock, no partial copy")
}

func startAndStop(ctx context.Context, config Config) error {
	server, err := Start(ctx, config)
	if err != nil {
		return err
	}
	return server.Stop(context.WithoutCancel(ctx))
}

// syncBuffer is a buffer for loggers on several goroutines.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func TestEnsure_KeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "postgresql-0.0.0")
	require.NoError(t, os.Mkdir(target, 0o755))
	config, err := Config{Version: "18"}.withDefaults()
	require.NoError(t, err)
	require.NoError(t, ensure(t.Context(), config, target, "0.0.0"))
	require.NoFileExists(t, target+".lock")
}

func TestEnsure_WaitsForAnotherThatFetches(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "postgresql-0.0.0")
	unlock, err := lock(t.Context(), target+".lock")
	require.NoError(t, err)
	config, err := Config{Version: "18"}.withDefaults()
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, ensure(ctx, config, target, "0.0.0"), context.DeadlineExceeded)

	waited := make(chan error)
	go func() { waited <- ensure(t.Context(), config, target, "0.0.0") }()
	require.NoError(t, os.Mkdir(target, 0o755)) // the other one succeeds
	unlock()
	require.NoError(t, <-waited)
}

func TestMakeReadable_UndoesAStrictUmask(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	program, text := filepath.Join(root, "bin", "postgres"), filepath.Join(root, "share.txt")
	require.NoError(t, os.Mkdir(filepath.Dir(program), 0o700))
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	require.NoError(t, os.WriteFile(text, nil, 0o600))

	require.NoError(t, makeReadable(root))

	for path, want := range map[string]os.FileMode{filepath.Dir(program): 0o755, program: 0o755, text: 0o644} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}
