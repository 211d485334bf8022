package nats_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

const (
	user     = "dispatcher"
	password = "secret-password"

	stream = "BOOKINGS"
	fence  = "ordered-fence.sms" // of the deliveries of sinktest
)

// bench is a server and a stream of one test, reached over a link to be broken.
type bench struct {
	server *server.Server // in this process; nil: elsewhere
	addr   string
	link   *link.Link
	admin  jetstream.JetStream
	stream jetstream.Stream
}

// newBench starts a server in this process, with a stream of one replica.
func newBench(t testing.TB, change func(*jetstream.StreamConfig)) *bench {
	t.Helper()
	s := startServer(t, nil)
	b := benchAt(t, s.Addr().String(), 1, change)
	b.server = s
	return b
}

// startServer starts a server in this process.
func startServer(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	options := &server.Options{
		ServerName: "one", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		Username: user, Password: password, AuthTimeout: 60, // a busy machine
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 1 << 20,
	}
	if change != nil {
		change(options)
	}
	s, err := server.NewServer(options)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { shutDown(t, s) })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s
}

func shutDown(t testing.TB, s *server.Server) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Shutdown()
		s.WaitForShutdown()
	}()
	waittest.Receive(t, over, "the server has shut down")
}

func benchAt(t testing.TB, addr string, replicas int, change func(*jetstream.StreamConfig)) *bench {
	t.Helper()
	connection, err := client.Connect("nats://"+addr, client.UserInfo(user, password))
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	b := &bench{addr: addr, link: tcptest.Link(t, addr)}
	b.admin, err = jetstream.New(connection)
	require.NoError(t, err)
	config := jetstream.StreamConfig{Name: stream, Subjects: []string{"bookings.>", fence}, Replicas: replicas}
	if change != nil {
		change(&config)
	}
	// Two streams, since the server removes the directory of an account when its last stream is deleted, in a goroutine: a stream
	// that was made meanwhile failed.
	for _, config := range []jetstream.StreamConfig{{Name: "KEPT", Subjects: []string{"kept"}}, config} {
		require.EventuallyWithT(t, func(c *assert.CollectT) { // a cluster elects its leaders
			b.stream, err = b.admin.CreateStream(t.Context(), config)
			require.NoError(c, err)
		}, time.Minute, 100*time.Millisecond)
	}
	return b
}

// edit changes the stream.
func (b *bench) edit(t testing.TB, change func(*jetstream.StreamConfig)) {
	t.Helper()
	config := b.stream.CachedInfo().Config
	change(&config)
	var err error
	b.stream, err = b.admin.UpdateStream(t.Context(), config)
	require.NoError(t, err)
}

// refuse makes everything but the type "made" a subject of no stream.
func (b *bench) refuse(t testing.TB) (restore func()) {
	t.Helper()
	b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.made", fence} })
	return func() {
		b.edit(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"bookings.>", fence} })
	}
}

// sink publishes by the records' types.
func (b *bench) sink(t testing.TB, change func(*nats.Config)) *nats.Sink {
	t.Helper()
	return sinktest.Made(t, nats.New, nats.Config{
		URL: "nats://" + b.link.Addr(), User: user, Password: password, Stream: stream, Subject: "bookings.{{lower .Type}}",
	}, change)
}

// window makes several messages wait for their acknowledgements.
func window(n int) func(*nats.Config) { return func(c *nats.Config) { c.Window = n } }

// away takes the server off the network.
func (b *bench) away(testing.TB) (back func()) { return b.link.Away() }

// message is what a client that is not ours finds in the stream.
type message struct {
	Subject string            `json:"subject"`
	Seq     uint64            `json:"seq"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"` // base64
}

// read asks the JavaScript client, and leaves out the claims.
func (b *bench) read(t testing.TB) []message {
	t.Helper()
	command := brokertest.Node(t, "testdata/reader/read.mjs", b.addr, user, password, stream)
	out, err := command.Output()
	require.NoError(t, err, "%v", command)
	var all []message
	for line := range strings.Lines(string(out)) {
		var m message
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		body, err := base64.StdEncoding.DecodeString(m.Body)
		require.NoError(t, err)
		m.Body = string(body)
		if !strings.HasPrefix(m.Subject, "ordered-fence.") {
			all = append(all, m)
		}
	}
	return all
}

func (b *bench) received(t testing.TB) []sinktest.Message {
	t.Helper()
	all := []sinktest.Message{}
	for _, m := range b.read(t) {
		all = append(all, sinktest.Message{DedupKey: m.Headers["ordered-dedup-key"], Payload: m.Body})
	}
	return all
}

func (b *bench) headers(t testing.TB, name string) []string {
	t.Helper()
	var all []string
	for _, m := range b.read(t) {
		all = append(all, m.Headers[name])
	}
	return all
}

// log is the records' sequences in the stream, each with other headers behind it;
// what strangers published is left out.
func (b *bench) log(t testing.TB, name ...string) string {
	t.Helper()
	var all []string
	for _, m := range b.read(t) {
		text, ours := m.Headers["ordered-sequence"]
		if !ours {
			continue
		}
		for _, header := range name {
			text += "/" + m.Headers[header]
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
