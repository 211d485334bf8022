package rabbitmq_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestDeliverBatch_ABrokerThatRefusesUsIsNoVerdictOnARecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	guest := "guest-" + strings.ToLower(b.name)
	for _, args := range [][]string{{"add_user", guest, "secret-password"}, {"set_permissions", guest, "^$", "^$", ".*"}} {
		_, err := b.broker.Control(t.Context(), args...)
		require.NoError(t, err)
	}
	t.Cleanup(func() { _, _ = b.broker.Control(t.Context(), "delete_user", guest) })
	asGuest := strings.NewReplacer("dispatcher:"+broker.RabbitMQPassword, guest+":secret-password")
	for name, c := range map[string]struct {
		change func(*rabbitmq.Config)
		fix    string
	}{
		"no such exchange":     {func(c *rabbitmq.Config) { c.Exchange, c.Type = "none", "" }, "declare the exchange"},
		"another type":         {func(c *rabbitmq.Config) { c.Type = amqp.ExchangeFanout }, "of another type"},
		"no such type":         {func(c *rabbitmq.Config) { c.Exchange, c.Type = b.name+"-new", "x-none" }, "enable the plugin that has the exchange's type, or correct type"},
		"no right to write":    {func(c *rabbitmq.Config) { c.URL, c.Type = asGuest.Replace(c.URL), "" }, "correct user, password, or the user's rights"},
		"no such virtual host": {func(c *rabbitmq.Config) { c.URL += "/none" }, "correct the vhost"},
	} {
		n, err := b.sink(t, c.change).DeliverBatch(t.Context(), sinktest.Deliveries(1, 2))
		require.Zero(t, n, name)
		require.True(t, processor.IsRefused(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.fix, name)
	}
	require.Empty(t, b.read(t))
}

// TestDeliverBatch_ALimitOnConnectionsPassesByItself: it comes with the code of a
// virtual host that we may not use. So does one on channels.
func TestDeliverBatch_ALimitOnConnectionsPassesByItself(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"max-connections", "max-channels"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			user := "limited-" + strings.ToLower(b.name)
			for _, args := range [][]string{{"add_user", user, "secret-password"}, {"set_permissions", user, ".*", ".*", ".*"},
				{"set_user_limits", user, fmt.Sprintf(`{"%s": 0}`, limit)}} {
				_, err := b.broker.Control(t.Context(), args...)
				require.NoError(t, err)
			}
			t.Cleanup(func() { _, _ = b.broker.Control(t.Context(), "delete_user", user) })
			as := strings.NewReplacer("dispatcher:"+broker.RabbitMQPassword, user+":secret-password")
			s := b.sink(t, func(c *rabbitmq.Config) { c.URL = as.Replace(c.URL) })
			_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
			require.ErrorContains(t, err, "limit")
			require.ErrorContains(t, err, "raise the limit")
			require.False(t, processor.IsRefused(err) || processor.IsPermanent(err), err)
			_, err = b.broker.Control(t.Context(), "clear_user_limits", user, limit)
			require.NoError(t, err)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
		})
	}
}

// An exchange that is deleted in mid-run: made again where the sink declares it.
func TestDeliverBatch_AnExchangeThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	declaring, finding := b.sink(t, nil), b.sink(t, func(c *rabbitmq.Config) { c.Type = "" })
	for _, s := range []*rabbitmq.Sink{declaring, finding} {
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	}
	require.NoError(t, b.admin.ExchangeDelete(b.name, false, false))
	_, err := finding.DeliverBatch(t.Context(), sinktest.Deliveries(2, 1))
	require.True(t, processor.IsRefused(err), err)
	require.False(t, outcome.IsUnknown(err), err)
	require.ErrorContains(t, err, "declare the exchange, or give its type to have it declared")
	_, err = declaring.DeliverBatch(t.Context(), sinktest.Deliveries(2, 1))
	require.Equal(t, "unreached", sinktest.Class(err), "nothing took it: %v", err)
	require.ErrorContains(t, err, "the next attempt declares the exchange again")
	_, err = declaring.DeliverBatch(t.Context(), sinktest.Deliveries(2, 1))
	require.ErrorContains(t, err, "312 NO_ROUTE", "it is there again")
}

// Of several records on their way the broker does not say which one it refuses.
func TestDeliverBatch_ARefusalOfAWindowLeavesItsRecordsOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	user := "writer-" + strings.ToLower(b.name)
	for _, args := range [][]string{{"add_user", user, "secret-password"}, {"set_permissions", user, ".*", ".*", ".*"},
		{"set_topic_permissions", user, b.name, "^made", ".*"}} {
		_, err := b.broker.Control(t.Context(), args...)
		require.NoError(t, err)
	}
	t.Cleanup(func() { _, _ = b.broker.Control(t.Context(), "delete_user", user) })
	as := strings.NewReplacer("dispatcher:"+broker.RabbitMQPassword, user+":secret-password")
	s := b.sink(t, func(c *rabbitmq.Config) { c.URL, c.Window = as.Replace(c.URL), 10 })
	ds := sinktest.Deliveries(1, 10)
	ds[3].Type = "forbidden"
	b.link.Hold(link.Server, func(data []byte) bool { return bytes.Contains(data, []byte(ds[0].DedupKey())) })
	b.link.OnData(func(_ bool, data []byte) {
		if bytes.Contains(data, []byte(ds[9].DedupKey())) { // all are on their way
			b.link.Release()
		}
	})
	n, err := s.DeliverBatch(t.Context(), ds)
	require.True(t, processor.IsRefused(err), err)
	require.ErrorContains(t, err, "the broker may have the record, and may mean another one of the")
	require.ErrorContains(t, err, "that are on their way: Exception (403)")
	require.True(t, outcome.IsOutage(err), err)
	m, err := s.DeliverBatch(t.Context(), ds[n:])
	require.Equal(t, 3, n+m, "one at a time: %v", err)
	require.True(t, processor.IsRefused(err), err)
	require.False(t, outcome.IsUnknown(err), err)
	require.NotContains(t, err.Error(), "may have")
}
