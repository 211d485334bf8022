package pglocal

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// ownerEnv makes this test binary the owner of a server that another test kills: see TestMain.
const ownerEnv = "PGLOCAL_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		beOwner()
	}
	os.Exit(m.Run())
}

// beOwner starts a server, tells its address and waits to be killed.
func beOwner() {
	server, err := Start(context.Background(), Config{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.DataDir(), server.Port())
	select {}
}

func start(t *testing.T, config Config) *Server {
	t.Helper()
	server, err := Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return server
}

func connect(t *testing.T, server *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query(t *testing.T, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	var value string
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

func TestStart_ServerIsReadyAndDurable(t *testing.T) {
	t.Parallel()
	server := start(t, Config{})
	conn := connect(t, server)
	for setting, want := range map[string]string{
		"fsync":                     "on",
		"timezone":                  "UTC",
		"server_encoding":           "UTF8",
		"max_prepared_transactions": "64",
		"listen_addresses":          "127.0.0.1",
		"data_directory":            server.DataDir(),
		"is_superuser":              "on",
	} {
		require.Equal(t, want, query(t, conn, "SELECT pg_catalog.current_setting($1)", setting), setting)
	}
	require.Contains(t, query(t, conn, "SELECT pg_catalog.version()"), "PostgreSQL "+server.Version())
}

func TestStart_AsksForThePassword(t *testing.T) {
	t.Parallel()
	server := start(t, Config{})
	_, err := pgx.Connect(t.Context(), strings.Replace(server.URL(), server.password, "guessed", 1))
	require.ErrorContains(t, err, "28P01")
}

func TestStart_SettingsReachTheServer(t *testing.T) {
	t.Parallel()
	conn := connect(t, start(t, Config{Settings: map[string]string{
		"max_connections": "17",
		"cluster_name":    `it's a \ name`,
		"timezone":        "Asia/Kathmandu",
	}}))
	require.Equal(t, "17", query(t, conn, "SELECT pg_catalog.current_setting('max_connections')"))
	require.Equal(t, `it's a \ name`, query(t, conn, "SELECT pg_catalog.current_setting('cluster_name')"))
	require.Equal(t, "Asia/Kathmandu", query(t, conn, "SELECT pg_catalog.current_setting('timezone')"))
}

func TestStart_NamesEveryFaultOfTheConfiguration(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{
		Version:  "9.6",
		Settings: map[string]string{"port": "5432", "work_mem = '1MB'\nfsync": "off"},
	})
	require.ErrorContains(t, err, `version "9.6"`)
	require.ErrorContains(t, err, `setting "port": pglocal chooses this one`)
	require.ErrorContains(t, err, `fsync": not the name of a PostgreSQL setting`)
}

func TestStart_UnknownVersionSaysWhichThereAre(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Version: "99"})
	require.ErrorContains(t, err, "PostgreSQL 99 is not on this machine and cannot be fetched; install it, or choose one from 14 to 18")
}

func TestStart_FailureShowsTheLogAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", publicDir(t))
	_, err := Start(t.Context(), Config{Settings: map[string]string{"shared_buffers": "plenty"}})
	require.ErrorContains(t, err, "postgres ended while starting (exit status 1)")
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers": "plenty"`)
	require.ErrorContains(t, err, "set DATABASE_URL")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestStart_CancelledLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", publicDir(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{})
	require.Error(t, err)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool { // of a fetch that another test has begun: see doc.go
		return strings.HasPrefix(e.Name(), "embedded_postgres_log")
	})
	require.Empty(t, left)
}

// publicDir is a temporary directory that any user can reach and write to, as /tmp is.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pglocal-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

func TestStopImmediate_CrashRecoveryKeepsCommittedRows(t *testing.T) {
	t.Parallel()
	server := start(t, Config{})
	conn := connect(t, server)
	_, err := conn.Exec(t.Context(), "CREATE TABLE public.t AS SELECT 'committed' AS word")
	require.NoError(t, err)

	require.NoError(t, server.StopImmediate(t.Context()))
	require.NoError(t, server.StopImmediate(t.Context()), "on a stopped server")
	_, err = pgx.Connect(t.Context(), server.URL())
	require.Error(t, err)

	before := server.URL()
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, before, server.URL())
	require.Equal(t, "committed", query(t, connect(t, server), "SELECT word FROM public.t"))
	require.Contains(t, server.LogTail(), "was not properly shut down")
}

func TestRestart_EndsInGoodOrder(t *testing.T) {
	t.Parallel()
	server := start(t, Config{})
	conn := connect(t, server)
	pid := server.Pid()
	require.NoError(t, server.Restart(t.Context()))
	require.Error(t, conn.Ping(t.Context()))
	require.NotEqual(t, pid, server.Pid())
	require.NotContains(t, server.LogTail(), "was not properly shut down")
	require.NoError(t, server.StopFast(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	require.NoError(t, connect(t, server).Ping(t.Context()))
}

func TestStandby_FollowsAndCanBePromoted(t *testing.T) {
	t.Parallel()
	primary := start(t, Config{})
	standby, err := primary.Standby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Stop(context.Background())) })

	conn, replica := connect(t, primary), connect(t, standby)
	_, err = conn.Exec(t.Context(), "CREATE TABLE public.t AS SELECT 'replicated' AS word")
	require.NoError(t, err)
	_, err = replica.Exec(t.Context(), "CREATE TABLE public.refused ()")
	require.ErrorContains(t, err, "25006")
	require.Eventually(t, func() bool {
		var word string
		err := replica.QueryRow(t.Context(), "SELECT word FROM public.t").Scan(&word)
		return err == nil && word == "replicated"
	}, 20*time.Second, 10*time.Millisecond)

	require.NoError(t, primary.StopImmediate(t.Context()))
	require.Equal(t, "true", query(t, replica, "SELECT pg_catalog.pg_promote()::text"))
	_, err = replica.Exec(t.Context(), "CREATE TABLE public.accepted ()")
	require.NoError(t, err)
}

func TestPutBack_IsTheSameClusterWithoutWhatCameSince(t *testing.T) {
	t.Parallel()
	server := start(t, Config{})
	const identity = "SELECT system_identifier || '/' || timeline_id FROM pg_control_system(), pg_control_checkpoint()"
	conn := connect(t, server)
	_, err := conn.Exec(t.Context(), "CREATE TABLE public.t AS SELECT 'before' AS word")
	require.NoError(t, err)
	before := query(t, conn, identity)
	require.NoError(t, server.Snapshot(t.Context()))
	_, err = connect(t, server).Exec(t.Context(), "UPDATE public.t SET word = 'after'")
	require.NoError(t, err)

	for range 2 {
		require.NoError(t, server.PutBack(t.Context()))
		conn = connect(t, server)
		require.Equal(t, "before", query(t, conn, "SELECT word FROM public.t"))
		require.Equal(t, before, query(t, conn, identity))
	}
}

func TestStandbyBehind_StampsByAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	if !HasCompiler() {
		t.Skip("this test needs a C compiler")
	}
	primary := start(t, Config{})
	standby, err := primary.StandbyBehind(t.Context(), time.Hour)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Stop(context.Background())) })
	require.NoError(t, primary.StopImmediate(t.Context()))
	conn := connect(t, standby)
	require.Equal(t, "true", query(t, conn, "SELECT pg_catalog.pg_promote()::text"))
	var now time.Time
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now))
	require.WithinDuration(t, time.Now().Add(-time.Hour), now, time.Minute)

	require.NoError(t, standby.SetBehind(0))
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now))
	require.WithinDuration(t, time.Now(), now, time.Minute)
	require.ErrorContains(t, primary.SetBehind(time.Hour), "the machine's clock")
}

func TestFreeze_AcceptsConnectionsAndAnswersNone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this test needs Linux")
	}
	server := start(t, Config{})
	conn := connect(t, server)
	require.NoError(t, server.Freeze())
	dialled, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server.Port()))
	require.NoError(t, err)
	require.NoError(t, dialled.Close())
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(context.Background()) }()
	select {
	case err := <-answered:
		require.Fail(t, "it answered", err)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, server.Thaw())
	require.NoError(t, <-answered)
}

func TestStop_LeavesNothing(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Config{})
	require.NoError(t, err)
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, server.Stop(t.Context()), "a second call")
	require.NoDirExists(t, filepath.Dir(server.DataDir()))
	require.True(t, throwaway.PortFree(server.Port()))
}

func TestServer_EndsWithItsKilledOwner(t *testing.T) {
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=1")
	stdout, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	var dataDir string
	var port int
	_, err = fmt.Sscan(line, &dataDir, &port)
	require.NoError(t, err, line)
	require.False(t, throwaway.PortFree(port))

	require.NoError(t, owner.Process.Kill())
	_ = owner.Wait()

	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(dataDir))
		return os.IsNotExist(err) && throwaway.PortFree(port)
	}, 20*time.Second, 10*time.Millisecond)
}

// TestStart_AsOrdinaryUser runs another test of this file as the user that servers run as, so that the path without
// root is walked on machines where tests run as root.
func TestStart_AsOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root; as an ordinary user the others show the same")
	}
	dir, err := throwaway.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close(context.Background())) })
	// By cp: a file that this process had open for writing may be "busy" while another test forks.
	require.NoError(t, exec.Command("cp", os.Args[0], dir.Path("self")).Run())
	require.NoError(t, exec.Command("chmod", "755", dir.Path("self")).Run())

	out, err := dir.Run(t.Context(), dir.Path("self"), "-test.v", "-test.run=^TestStopImmediate_")
	require.NoError(t, err)
	require.Contains(t, out, "--- PASS: TestStopImmediate_CrashRecoveryKeepsCommittedRows")
}

func TestKill_OfAFrozenServerLosesWhatIsNotOnItsDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this test needs Linux")
	}
	server := start(t, Config{Settings: map[string]string{"wal_writer_delay": "10s", "autovacuum": "off"}})
	conn := connect(t, server)
	for _, sql := range []string{"CREATE TABLE public.t (word text)", "SET synchronous_commit = off", "INSERT INTO public.t VALUES ('committed')"} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	require.NoError(t, server.Freeze())
	require.NoError(t, server.Kill(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, "0", query(t, connect(t, server), "SELECT count(*)::text FROM public.t"))
}
