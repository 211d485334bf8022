package rabbitmq_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// RabbitMQ routes a message by its headers CC and BCC besides its routing key.
func TestDeliverBatch_NoHeaderOfARecordReroutesItsMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.QueueUnbind(b.name, "#", b.name, nil))
	b.bind(t, "made")
	elsewhere := b.name + ".elsewhere"
	_, err := b.admin.QueueDeclare(elsewhere, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, b.admin.QueueBind(elsewhere, "elsewhere", b.name, false, nil))
	ds := sinktest.Deliveries(1, 1)
	ds[0].Headers = map[string]string{"CC": "elsewhere", "BCC": "elsewhere", "cc": "x", "x-delay": "9", "X-Delay": "9", "x-request-id": "kept"}
	sinktest.Delivered(t, b.sink(t, nil), ds)
	all := b.read(t)
	require.Len(t, all, 1)
	require.Equal(t, "kept", all[0].Headers["x-request-id"])
	for name := range ds[0].Headers {
		if name != "x-request-id" {
			require.NotContains(t, all[0].Headers, name)
		}
	}
	other := &bench{broker: b.broker, name: elsewhere, kind: "queue"}
	require.Empty(t, other.read(t))
}

// A direct reply-to is a queue of the broker's own, which the default exchange reaches.
func TestDeliverBatch_NoRecordReachesAQueueOfTheBrokersOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *rabbitmq.Config) { c.Exchange, c.Type, c.RoutingKey = "", "", "{{tokens .Type}}" })
	for _, typ := range []string{"amq.rabbitmq.reply-to.x", "amq.gen-x"} {
		ds := sinktest.Deliveries(1, 1)
		ds[0].Type = typ
		n, err := s.DeliverBatch(t.Context(), ds)
		require.Zero(t, n)
		require.True(t, processor.IsPermanent(err), err)
		require.ErrorContains(t, err, "its routing key begins with amq.")
	}
}

func TestDeliverBatch_AValueOfARecordIsOneWordOfTheRoutingKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	require.NoError(t, b.admin.QueueUnbind(b.name, "#", b.name, nil))
	b.bind(t, "orders.*")
	ds := sinktest.Deliveries(1, 1)
	ds[0].Type = "order.Made"
	words := b.sink(t, func(c *rabbitmq.Config) { c.RoutingKey = "orders.{{tokens .Type}}" })
	n, err := words.DeliverBatch(t.Context(), ds)
	require.Zero(t, n)
	require.ErrorContains(t, err, `bind a queue for routing key "orders.order.Made", or correct routing_key`)
	word := b.sink(t, func(c *rabbitmq.Config) { c.RoutingKey = "orders.{{.Type}}" })
	sinktest.Delivered(t, word, ds)
	require.Len(t, b.read(t), 1)
	require.NoError(t, b.admin.ExchangeDelete(b.name, false, false))
	require.NoError(t, b.admin.ExchangeDeclare(b.name, amqp.ExchangeTopic, true, false, false, false, nil))
	_, err = word.DeliverBatch(t.Context(), ds)
	require.ErrorContains(t, err, "a value's dot is %2E, unless the template says {{tokens …}}")
}
