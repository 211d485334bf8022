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

// Settings are those of the shared server: room for many tests at once, and no syncing to disk, since nobody pulls
// this machine's plug to see what a test's rows do then.
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

// Announced is the variable that is set once it was said which server is used.
const Announced = "ORDERED_DISPATCHER_TEST_SERVER"

// Announce says, before anything is done there, that the tests make and drop databases
// and roles on the server of DATABASE_URL, and says it once for all test binaries.
func Announce(log *slog.Logger) {
	if os.Getenv(Announced) != "" {
		return
	}
	_ = os.Setenv(Announced, "yes")
	server := "the server of DATABASE_URL"
	if config, err := pgconn.ParseConfig(os.Getenv("DATABASE_URL")); err == nil {
		server = net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) // no user, and no password
	}
	log.Warn("DATABASE_URL is set: the tests make and drop databases and roles there. Unset it to have a throw-away server", "server", server)
}

// shared returns the address of the server that this test binary's databases live on. A server that it starts ends
// with the process.
var shared = sync.OnceValues(func() (string, error) {
	if address := os.Getenv("DATABASE_URL"); address != "" {
		Announce(slog.New(slog.NewTextHandler(os.Stderr, nil)))
		return address, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*timeout)
	defer cancel()
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: Settings(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return "", fmt.Errorf("start the shared test server: %w", err)
	}
	return server.URL(), nil
})

// Server starts a server for this test alone and removes it when the test ends. It differs from the shared one in the
// settings given and in that it syncs to disk. It is a local one even where DATABASE_URL is set. If the test failed,
// the end of its log is shown.
func Server(t testing.TB, settings map[string]string) *pglocal.Server {
	t.Helper()
	all := roomy()
	maps.Copy(all, settings)
	ctx, cancel := context.WithTimeout(context.Background(), 5*timeout)
	defer cancel()
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, "server", server) })
	return server
}

// Standby starts a standby of a server, removed when the test ends. The server is restarted on the way.
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
