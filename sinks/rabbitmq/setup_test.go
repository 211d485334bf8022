package rabbitmq_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// bench is an exchange and a queue of one test, reached over a link to be broken.
type bench struct {
	broker *broker.RabbitMQ
	link   *link.Link
	name   string // of the exchange and the queue
	kind   string // queue or stream
	admin  *amqp.Channel
}

// benches that were made: each has a name of its own, however often a test runs.
var benches atomic.Int64

func newBench(t testing.TB, queue amqp.Table) *bench {
	t.Helper()
	rabbit := brokertest.SharedRabbitMQ(t)
	name := fmt.Sprintf("%s.%d", strings.ReplaceAll(t.Name(), "/", "."), benches.Add(1))
	b := &bench{broker: rabbit, link: tcptest.Link(t, rabbit.Addr()), name: name, kind: "queue"}
	if queue["x-queue-type"] == "stream" {
		b.kind = "stream"
	}
	connection, err := amqp.Dial(rabbit.URL(rabbit.Addr()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	b.admin, err = connection.Channel()
	require.NoError(t, err)
	require.NoError(t, b.admin.ExchangeDeclare(b.name, amqp.ExchangeTopic, true, false, false, false, nil))
	_, err = b.admin.QueueDeclare(b.name, true, false, false, false, queue)
	require.NoError(t, err)
	b.bind(t, "#")
	return b
}

func (b *bench) bind(t testing.TB, key string) {
	t.Helper()
	require.NoError(t, b.admin.QueueBind(b.name, key, b.name, false, nil))
}

// refuse makes everything but the type "made" unroutable.
func (b *bench) refuse(t testing.TB) (restore func()) {
	t.Helper()
	b.bind(t, "made")
	require.NoError(t, b.admin.QueueUnbind(b.name, "#", b.name, nil))
	return func() { b.bind(t, "#") }
}

// sink publishes to the exchange, by the records' types.
func (b *bench) sink(t testing.TB, change func(*rabbitmq.Config)) *rabbitmq.Sink {
	t.Helper()
	return sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: b.broker.URL(b.link.Addr()), Exchange: b.name, Type: amqp.ExchangeTopic, RoutingKey: "{{lower .Type}}"}, change)
}

// empty purges the queue. A stream cannot be.
func (b *bench) empty(queue amqp.Table) func(testing.TB) {
	if queue["x-queue-type"] == "stream" {
		return nil
	}
	return func(t testing.TB) {
		_, err := b.admin.QueuePurge(b.name, false)
		require.NoError(t, err)
	}
}

// away takes the broker off the network.
func (b *bench) away(testing.TB) (back func()) { return b.link.Away() }

// message is what a client that is not ours finds in the queue.
type message struct {
	MessageID    string            `json:"message_id"`
	DeliveryMode int               `json:"delivery_mode"`
	Type         string            `json:"type"`
	Timestamp    int64             `json:"timestamp"`
	Headers      map[string]string `json:"headers"`
	Body         string            `json:"body"` // base64
}

// read asks pika, the Python client.
func (b *bench) read(t testing.TB) []message {
	t.Helper()
	command := exec.CommandContext(t.Context(), brokertest.Python(t, "pika"), "testdata/read.py", b.broker.URL(b.broker.Addr()), b.kind, b.name)
	out, err := command.Output()
	require.NoError(t, err, "%v", command)
	var all []message
	for line := range strings.Lines(string(out)) {
		var m message
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		body, err := base64.StdEncoding.DecodeString(m.Body)
		require.NoError(t, err)
		m.Body = string(body)
		all = append(all, m)
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
