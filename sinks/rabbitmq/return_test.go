package rabbitmq_test

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Whole windows come back, since no queue is bound. Then one is, and the word on the
// first attempts is none on the second ones.
func TestDeliverBatch_AReturnIsOfOneAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *rabbitmq.Config) { c.Window = 4 })
	const rounds = 20
	for round := range rounds {
		ds := sinktest.Deliveries(4*round+1, 4)
		for i := range ds {
			ds[i].Type = "other"
		}
		restore := b.refuse(t)
		n, err := s.DeliverBatch(t.Context(), ds)
		require.ErrorContains(t, err, "312 NO_ROUTE")
		require.Zero(t, n)
		restore()
		sinktest.Delivered(t, s, ds)
	}
	all := b.read(t)
	require.Len(t, all, 4*rounds)
	for i, m := range all {
		require.Equal(t, fmt.Sprint(i+1), m.Headers["ordered-sequence"])
	}
}

// A headers exchange compares types, too: a number in a binding is not the text that travels, and the advice was about routing keys.
func TestDeliverBatch_AHeadersExchangeNeedsBindingsOfText(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	exchange := b.name + "-headers"
	require.NoError(t, b.admin.ExchangeDeclare(exchange, amqp.ExchangeHeaders, true, false, false, false, nil))
	bind := func(arguments amqp.Table) {
		require.NoError(t, b.admin.QueueBind(b.name, "", exchange, false, arguments))
	}
	bind(amqp.Table{"x-match": "all", "n": int32(1)})
	s := b.sink(t, func(c *rabbitmq.Config) { c.Exchange, c.Type, c.RoutingKey = exchange, amqp.ExchangeHeaders, "" })
	ds := sinktest.Deliveries(1, 1)
	ds[0].Headers = map[string]string{"n": "1"}
	_, err := s.DeliverBatch(t.Context(), ds)
	require.ErrorContains(t, err, "312 NO_ROUTE; bind a queue whose arguments match the record's headers, which travel as text")
	require.NotContains(t, err.Error(), "routing key")
	bind(amqp.Table{"x-match": "all", "n": "1", "ordered-sequence": int64(1)})
	sinktest.Delivered(t, s, ds)
}
