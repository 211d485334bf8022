package receivers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
)

const (
	producers = 2
	backlog   = 40 // bookings that wait; producers pause above it
)

const config = `database: ${DATABASE_URL}
processes:
  bookings:
    source: {table: public.outbox, preset: outbox}
    start: beginning
    poll: 20ms
    retry: {initial: 10ms}
    on_poison: dead_letter
    sink:
      webhook: {url: %q, secret: %q}
`

// world is a database, a daemon and a receiver.
type world struct {
	t       *testing.T
	address string
	pool    *pgxpool.Pool
	dir     *throwaway.Dir
	wire    *wire
	daemon  *throwaway.Process
	booked  atomic.Int64 // the number of the last booking
	replays int          // dead letters that were replayed
	seeks   int          // how often the operator sought back
}

// newWorld makes the tables. It has no receiver yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, address: pgtest.URL(t)}
	w.pool = pgtest.Pool(t, w.address, pgtest.PoolConfig{})
	o, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	pgtest.Exec(t, w.pool, o.SQL())
	pgtest.Exec(t, w.pool, "CREATE TABLE public.room (name text PRIMARY KEY)")
	pgtest.Exec(t, w.pool, "INSERT INTO public.room VALUES ('blue')")
	pgtest.Exec(t, w.pool, "CREATE TABLE public.booking (n bigint GENERATED ALWAYS AS IDENTITY, id bigint NOT NULL, room text NOT NULL)")
	_, err = migrations.Up(t.Context(), migrations.Config{ConnString: w.address})
	require.NoError(t, err)
	w.dir, err = throwaway.NewOwn(t.Context())
	require.NoError(t, err)
	t.Cleanup(w.close)

	w.wire = newWire(t)
	require.NoError(t, w.dir.WriteFile("dispatcher.yaml", fmt.Appendf(nil, config, w.wire.server.URL, secret)))
	return w
}

// receive starts a receiver: see receivers.
func (w *world) receive(program []string) {
	w.t.Helper()
	port, err := throwaway.FreePort()
	require.NoError(w.t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	environment := []string{fmt.Sprintf("PORT=%d", port), "DATABASE_URL=" + w.address, "SECRET=" + secret}
	process, err := w.dir.Start("receiver.log", "env", append(environment, program...)...)
	require.NoError(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	require.NoError(w.t, process.AwaitListener(ctx, address), w.dir.Tail("receiver.log", 20))
	w.wire.receivers = append(w.wire.receivers, "http://"+address)
	w.stall(address)
}

// stall is a client that sends a part of a request, and no more. A receiver with one thread would wait for the rest.
func (w *world) stall(address string) {
	w.t.Helper()
	conn, err := new(net.Dialer).DialContext(w.t.Context(), "tcp", address)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("POST / HTTP/1.1\r\nHost: "))
	require.NoError(w.t, err)
}

func (w *world) close() {
	if w.t.Failed() {
		w.t.Logf("the receiver's log ends:\n%s\nthe daemon's log ends:\n%s", w.dir.Tail("receiver.log", 20), w.dir.Tail("daemon.log", 20))
	}
	if err := w.dir.Close(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Error(err)
	}
}

// program is the daemon, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	return built("ordered-dispatcher", "github.com/ordered-dispatcher/ordered-dispatcher/cmd/ordered-dispatcher")
})

func built(name, from string) (string, error) {
	path := filepath.Join(testDir, name)
	if out, err := exec.Command("go", "build", "-o", path, from).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", from, err, out)
	}
	return path, nil
}

func (w *world) start() {
	w.t.Helper()
	path, err := program()
	require.NoError(w.t, err)
	w.daemon, err = w.dir.Start("daemon.log", "env", "DATABASE_URL="+w.address, path, "run", "-c", w.dir.Path("dispatcher.yaml"))
	require.NoError(w.t, err)
}

func (w *world) kill() {
	w.t.Helper()
	_ = w.daemon.Stop(w.t.Context(), syscall.SIGKILL)
}

// operate runs a command of the operator.
func (w *world) operate(args ...string) error {
	_, err := w.command(append(args, "-c", w.dir.Path("dispatcher.yaml"), "--reason", "a test")...)
	return err
}

// command runs the program, and returns what it prints.
func (w *world) command(args ...string) (string, error) {
	path, err := program()
	require.NoError(w.t, err)
	return w.dir.Run(w.t.Context(), "env", append([]string{"DATABASE_URL=" + w.address, "COLUMNS=9999", path}, args...)...)
}

// await polls for a condition.
func (w *world) await(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		require.True(w.t, time.Now().Before(end), what)
	}
}

func (w *world) number(sql string, args ...any) int64 {
	w.t.Helper()
	return pgtest.Value[int64](w.t, w.pool, sql, args...)
}

func (w *world) text(sql string) string {
	w.t.Helper()
	return pgtest.Value[string](w.t, w.pool, sql)
}

var errUndone = errors.New("undone")

// book commits bookings in a transaction, or rolls them back with errUndone.
func (w *world) book(ctx context.Context, end error, rooms ...string) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		for _, room := range rooms {
			id := w.booked.Add(1)
			record := outbox.Record{Type: "booked", AggregateID: fmt.Sprint(id), Payload: map[string]any{"id": id, "room": room}}
			if err := outbox.Add(ctx, tx, record); err != nil {
				return err
			}
		}
		return end
	})
}

const waitingSQL = "SELECT (SELECT count(*) FROM public.outbox) - (SELECT count(*) FROM public.booking)"

// produce books until the returned function is called.
func (w *world) produce() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var group sync.WaitGroup
	for range producers {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := w.produceOne(ctx, i); err != nil && ctx.Err() == nil {
					w.t.Errorf("produce: %v", err)
					return
				}
			}
		})
	}
	return func() { cancel(); group.Wait() }
}

func (w *world) produceOne(ctx context.Context, i int) error {
	var waiting int64
	if err := w.pool.QueryRow(ctx, waitingSQL).Scan(&waiting); err != nil {
		return err
	}
	if waiting > backlog {
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	if i%7 == 0 {
		if err := w.book(ctx, errUndone, "blue"); !errors.Is(err, errUndone) {
			return err
		}
	}
	return w.book(ctx, nil, "blue", "blue")
}
