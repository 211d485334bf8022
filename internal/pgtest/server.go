package pgtest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
)

// Settings returns the settings of the shared server. It has room for many tests at once. It does not sync to disk,
// since these tests do not need their rows after a crash of the machine.
func Settings() map[string]string {
	settings := roomy()
	settings["fsync"] = "off"
	return settings
}

func roomy() map[string]string {
	return map[string]string{
		"max_connections":           "200",
		"max_prepared_transactions": "64",
	}
}

// Announced is the environment variable that is set once a line about the server in use was logged.
const Announced = "ORDERED_DISPATCHER_TEST_SERVER"

// Announce logs that the tests make and drop databases and roles on the server of DATABASE_URL, before they do so. It
// logs that once for all test binaries.
func Announce(log *slog.Logger) {
	if os.Getenv(Announced) != "" {
		return
	}
	_ = os.Setenv(Announced, "yes")
	server := "the server of DATABASE_URL"
	if config, err := pgconn.ParseConfig(os.Getenv("DATABASE_URL")); err == nil {
		server = net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) // without the user and the password
	}
	log.Warn("DATABASE_URL is set: the tests make and drop databases and roles there. Unset it to have a throw-away server", "server", server)
}

// shared returns the address of the server that has this test binary's databases. A server that it starts ends with
// the process.
var shared = sync.OnceValues(func() (string, error) {
	if address := os.Getenv("DATABASE_URL"); address != "" {
		Announce(slog.New(slog.NewTextHandler(os.Stderr, nil)))
		return address, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: Settings(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return "", fmt.Errorf("start the shared test server: %w", err)
	}
	return server.URL(), nil
})

// Server starts a server for this test alone and removes it when the test ends. It has the given settings, and unlike
// the shared server it syncs to disk. It is a local one even if DATABASE_URL is set. If the test failed, the end of
// the server's log is shown.
func Server(t testing.TB, settings map[string]string) *pglocal.Server {
	t.Helper()
	all := roomy()
	maps.Copy(all, settings)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, "server", server) })
	return server
}

// Standby starts a standby of a server. It is removed when the test ends. This restarts the primary.
func Standby(t testing.TB, primary *pglocal.Server) *pglocal.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	standby, err := primary.Standby(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, "standby", standby) })
	return standby
}

func stop(t testing.TB, name string, server *pglocal.Server) {
	if t.Failed() {
		t.Logf("the end of the %s's log:\n%s", name, server.LogTail())
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		t.Error(err)
	}
}
