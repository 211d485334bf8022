package rabbitmq_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
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
// virtual host that we may not use.
func TestDeliverBatch_ALimitOnConnectionsPassesByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	user := "limited-" + strings.ToLower(b.name)
	for _, args := range [][]string{{"add_user", user, "secret-password"}, {"set_permissions", user, ".*", ".*", ".*"},
		{"set_user_limits", user, `{"max-connections": 0}`}} {
		_, err := b.broker.Control(t.Context(), args...)
		require.NoError(t, err)
	}
	t.Cleanup(func() { _, _ = b.broker.Control(t.Context(), "delete_user", user) })
	as := strings.NewReplacer("dispatcher:"+broker.RabbitMQPassword, user+":secret-password")
	s := b.sink(t, func(c *rabbitmq.Config) { c.URL = as.Replace(c.URL) })
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "is reached")
	require.ErrorContains(t, err, "raise the limit")
	require.False(t, processor.IsRefused(err) || processor.IsPermanent(err), err)
	_, err = b.broker.Control(t.Context(), "clear_user_limits", user, "max-connections")
	require.NoError(t, err)
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.NoError(t, err)
}

// An exchange that is deleted in mid-run: made again where the sink declares it.
func TestDeliverBatch_AnExchangeThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	declaring, finding := b.sink(t, nil), b.sink(t, func(c *rabbitmq.Config) { c.Type = "" })
	for _, s := range []*rabbitmq.Sink{declaring, finding} {
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.NoError(t, err)
	}
	require.NoError(t, b.admin.ExchangeDelete(b.name, false, false))
	_, err := finding.DeliverBatch(t.Context(), sinktest.Deliveries(2, 1))
	require.True(t, processor.IsRefused(err), err)
	_, err = declaring.DeliverBatch(t.Context(), sinktest.Deliveries(2, 1))
	require.Error(t, err)
	require.False(t, processor.IsRefused(err) || processor.IsPermanent(err), err)
}
