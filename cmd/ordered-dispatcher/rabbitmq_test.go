package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

// The configuration of docs/sinks/rabbitmq.md, for the table and the broker of
// this test.
func TestDrain_IntoRabbitMQ(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.SharedRabbitMQ(t)
	connection, err := amqp.Dial(rabbit.URL(rabbit.Addr()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	require.NoError(t, err)
	require.NoError(t, channel.ExchangeDeclare("orders", amqp.ExchangeTopic, true, false, false, false, nil))
	_, err = channel.QueueDeclare("all", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, channel.QueueBind("all", "#", "orders", false, nil))

	page, err := os.ReadFile("../../docs/sinks/rabbitmq.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	text = strings.Replace(text, "table: public.orders", "table: public.bookings", 1)
	text = regexp.MustCompile(`amqp://\S+`).ReplaceAllLiteralString(text, rabbit.URL(rabbit.Addr()))
	address, _ := database(t, 20)
	code, _, stderr := do(t, address, "run", "--drain", "-c", file(t, text))
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, broker.RabbitMQPassword)
	for want := range 20 {
		d, ok, err := channel.Get("all", true)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, want+1, d.Headers["ordered-sequence"])
	}
}

// A queue that is not there yet and a broker that is down are no word on a record: no
// attempt of it is used up, however long that takes.
func TestDrain_AnOutageOfRabbitMQPutsNoRecordAside(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.SharedRabbitMQ(t)
	for name, away := range map[string]func(*testing.T, *link.Link, *amqp.Channel, string) (back func()){
		"no queue": func(t *testing.T, _ *link.Link, channel *amqp.Channel, queue string) func() {
			require.NoError(t, channel.QueueUnbind(queue, "orders", queue, nil))
			return func() { require.NoError(t, channel.QueueBind(queue, "orders", queue, false, nil)) }
		},
		"connection refused": func(_ *testing.T, l *link.Link, _ *amqp.Channel, _ string) func() { return l.Away() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := tcptest.Link(t, rabbit.Addr())
			connection, err := amqp.Dial(rabbit.URL(rabbit.Addr()))
			require.NoError(t, err)
			t.Cleanup(func() { _ = connection.Close() })
			channel, err := connection.Channel()
			require.NoError(t, err)
			queue := "outage " + name
			require.NoError(t, channel.ExchangeDeclare(queue, amqp.ExchangeDirect, true, false, false, false, nil))
			_, err = channel.QueueDeclare(queue, true, false, false, false, nil)
			require.NoError(t, err)
			require.NoError(t, channel.QueueBind(queue, "orders", queue, false, nil))

			address, pool := database(t, 20)
			config := file(t, `processes: {a: {source: {table: public.bookings}, start: beginning, sink: {rabbitmq: {url: "`+rabbit.URL(l.Addr())+`",
				exchange: "`+queue+`", routing_key: orders}}, on_poison: dead_letter, retry: {attempts: 2, initial: 10ms, max: 20ms}}}`)
			back := away(t, l, channel, queue)
			ended := make(chan int, 1)
			go func() {
				code, _, stderr := do(t, address, "run", "--drain", "-c", config)
				t.Log(stderr)
				ended <- code
			}()
			require.Eventually(t, func() bool {
				var attempts int
				_ = pool.QueryRow(t.Context(), "SELECT failed_attempts FROM public.cursor WHERE failed_class = 'unreached'").Scan(&attempts)
				return attempts >= 5 || letters(t, pool) > 0
			}, time.Minute, 10*time.Millisecond)
			require.Zero(t, letters(t, pool))
			back()
			require.Zero(t, <-ended)
			require.Zero(t, letters(t, pool))
			for want := range 20 {
				d, ok, err := channel.Get(queue, true)
				require.NoError(t, err)
				require.True(t, ok)
				require.EqualValues(t, want+1, d.Headers["ordered-sequence"])
			}
		})
	}
}
