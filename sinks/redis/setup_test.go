package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const (
	password = "secret-password"
	stream   = "bookings"
	// state is the key of the deliveries of sinktest, whose origin is here.
	state   = "ordered-state:here"
	maxBulk = 1 << 20 // the least that Redis can be told
)

// durable are the arguments of a server that keeps all that it acknowledges.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// bench is a server of one test, reached over a link to be broken.
type bench struct {
	dir     *throwaway.Dir
	process *throwaway.Process
	args    []string
	addr    string
	link    *link.Link
}

// newBench starts a server.
func newBench(t testing.TB, args ...string) *bench {
	t.Helper()
	b := &bench{}
	server := pgtest.Require(t, "redis-server")
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	b.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	b.dir, err = throwaway.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.dir.Close(context.Background())) })
	b.args = append([]string{server, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", b.dir.Path(), "--requirepass", password,
		"--save", "", "--proto-max-bulk-len", strconv.Itoa(maxBulk)}, args...)
	b.start(t)
	b.link = tcptest.Link(t, b.addr)
	return b
}

func (b *bench) start(t testing.TB) {
	t.Helper()
	var err error
	b.process, err = b.dir.Start("redis.log", b.args[0], b.args[1:]...)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		answer, err := b.try("PING")
		return err == nil && answer == "PONG"
	}, time.Minute, 10*time.Millisecond, b.dir.Tail("redis.log", 20))
}

// ask has the server run a command, over a connection of its own, and speaks RESP by itself.
func (b *bench) ask(t testing.TB, command ...string) any {
	t.Helper()
	answer, err := b.try(command...)
	require.NoError(t, err, command)
	return answer
}

func (b *bench) try(command ...string) (any, error) {
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	var answer any
	for _, words := range [][]string{{"AUTH", password}, command} {
		fmt.Fprintf(conn, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(word), word)
		}
		if answer, err = reply(r); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// reply reads one: a text, nil, or a list.
func reply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.Atoi(text)
	switch {
	case line[0] == '-':
		return nil, errors.New(text)
	case (line[0] == '$' || line[0] == '*') && n < 0:
		return nil, nil
	case line[0] == '$':
		value := make([]byte, n+2)
		_, err := io.ReadFull(r, value)
		return string(value[:n]), err
	case line[0] == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = reply(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		return text, nil
	}
}

// entries are the fields of those of a stream.
func (b *bench) entries(t testing.TB, stream string) []map[string]string {
	t.Helper()
	all := []map[string]string{}
	for _, one := range b.ask(t, "XRANGE", stream, "-", "+").([]any) {
		values, fields := one.([]any)[1].([]any), map[string]string{}
		for i := 0; i < len(values); i += 2 {
			require.NotContains(t, fields, values[i], "a field twice")
			fields[values[i].(string)] = values[i+1].(string)
		}
		all = append(all, fields)
	}
	return all
}

func (b *bench) received(t testing.TB) []sinktest.Message {
	t.Helper()
	all := []sinktest.Message{}
	for _, e := range b.entries(t, stream) {
		all = append(all, sinktest.Message{DedupKey: e["ordered-dedup-key"], Payload: e["payload"]})
	}
	return all
}

func (b *bench) headers(t testing.TB, name string) []string {
	t.Helper()
	var all []string
	for _, e := range b.entries(t, stream) {
		all = append(all, e[name])
	}
	return all
}

// log is the numbers in a stream.
func (b *bench) log(t testing.TB, stream string) string {
	t.Helper()
	var all []string
	for _, e := range b.entries(t, stream) {
		all = append(all, e["ordered-sequence"])
	}
	return strings.Join(all, " ")
}

// sink appends to the stream.
func (b *bench) sink(t testing.TB, change func(*redis.Config)) *redis.Sink {
	t.Helper()
	return sinktest.Made(t, redis.New, redis.Config{URL: "redis://:" + password + "@" + b.link.Addr(), Stream: stream}, change)
}

func window(n int) func(*redis.Config) { return func(c *redis.Config) { c.Window = n } }

// under returns deliveries under an epoch, by a worker.
func under(epoch cursor.Epoch, worker string, ds []processor.Delivery) []processor.Delivery {
	ds = sinktest.Under(epoch, ds)
	for i := range ds {
		ds[i].Worker = worker
	}
	return ds
}
