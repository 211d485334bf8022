package webhook_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// inbox is a receiver that keeps what it took.
type inbox struct {
	addr   string
	server *http.Server
	ended  chan struct{} // closed when server has left its listener
	mu     sync.Mutex
	all    []sinktest.Message
	heads  []http.Header

	denied  bool
	refused string // the type of records that it does not take
	silent  bool
	mute    bool // takes the next record, and ends without an answer
}

// newInbox listens at a port that the system does not hand out. A port that it did could go to another test while the
// receiver is away, and that test's receiver would answer.
func newInbox(t testing.TB) *inbox {
	t.Helper()
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	b := &inbox{addr: fmt.Sprintf("127.0.0.1:%d", port)}
	require.NoError(t, b.listen())
	t.Cleanup(func() { _ = b.server.Close() })
	return b
}

// listen answers at the address of the inbox.
func (b *inbox) listen() error {
	listener, err := net.Listen("tcp", b.addr)
	if err != nil {
		return err
	}
	b.server, b.ended = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	go func(server *http.Server, ended chan struct{}) {
		defer close(ended)
		_ = server.Serve(listener)
	}(b.server, b.ended)
	return nil
}

const tooLarge = 1_000_000

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, tooLarge))
	key, decoded := url.PathUnescape(r.Header.Get("Idempotency-Key"))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silent {
		b.mu.Unlock()
		<-r.Context().Done()
		b.mu.Lock()
		return
	}
	switch {
	case b.denied:
		w.WriteHeader(http.StatusUnauthorized)
	case err != nil || decoded != nil:
		w.WriteHeader(http.StatusBadRequest)
	case len(body) == tooLarge:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case b.refused != "" && r.Header.Get("Ordered-Type") == b.refused:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		b.all = append(b.all, sinktest.Message{DedupKey: key, Payload: string(body)})
		b.heads = append(b.heads, r.Header)
		if b.mute {
			panic(http.ErrAbortHandler) // ends the connection
		}
	}
}

func (b *inbox) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *inbox) refuse(_ testing.TB, typ string) (restore func()) {
	b.set(func() { b.refused = typ })
	return func() { b.set(func() { b.refused = "" }) }
}

func (b *inbox) silence(testing.TB) { b.set(func() { b.silent = true }) }

func (b *inbox) lose(testing.TB) (back func()) {
	b.set(func() { b.mute = true })
	return func() { b.set(func() { b.mute = false }) }
}

func (b *inbox) away(t testing.TB) (back func()) {
	require.NoError(t, b.server.Close())
	<-b.ended // a server that has not begun has not closed its listener
	return func() { require.NoError(t, b.listen()) }
}

func (b *inbox) received(testing.TB) []sinktest.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sinktest.Message{}, slices.Clone(b.all)...)
}

func (b *inbox) headers(_ testing.TB, name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, h := range b.heads {
		all = append(all, h.Get(name))
	}
	return all
}

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]webhook.Config{
		"plain":     {URL: "/in"},
		"all of it": {URL: "/in/{{.Key}}?type={{.Type}}", Secret: "secret-password-of-32-bytes-xxxx", Bearer: "secret-password", Format: webhook.CloudEvents, Probe: "GET /{{.DedupKey}}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				b := newInbox(t)
				c := c
				c.URL, c.Timeout = "http://"+b.addr+c.URL, 20*time.Second
				another := func(t testing.TB, _ string) processor.BatchSink {
					sink, err := webhook.New(c)
					require.NoError(t, err)
					return sinktest.One(sink)
				}
				return sinktest.Subject{
					Sink:     another(t, "sms"),
					Another:  another,
					Empty:    func(testing.TB) { b.set(func() { b.all = nil }) },
					Lose:     b.lose,
					Received: b.received,
					Header:   b.headers,
					Refuse:   b.refuse,
					Deny: func(testing.TB) (processor.BatchSink, func()) {
						b.set(func() { b.denied = true })
						return nil, func() { b.set(func() { b.denied = false }) }
					},
					Away:     b.away,
					Silence:  b.silence,
					TooLarge: tooLarge,
					Order:    true,
				}
			})
		})
	}
}
