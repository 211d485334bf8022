package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
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
