package rabbitmq_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// header reads a header for inbox.FromHeaders, as docs/wire.md shows it. The numbers are integers of AMQP.
func header(d amqp.Delivery) func(name string) string {
	return func(name string) string {
		if value, ok := d.Headers[name]; ok {
			return fmt.Sprint(value)
		}
		return ""
	}
}

// applyAll applies what the queue has, and dies after a COMMIT and before the acknowledgement if die says so. It returns
// whether it has died.
func applyAll(t *testing.T, b *bench, pool *pgxpool.Pool, box *inbox.Inbox, die func(inbox.Message) bool) bool {
	t.Helper()
	connection, err := amqp.Dial(b.broker.URL(b.broker.Addr()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	channel, err := connection.Channel()
	require.NoError(t, err)
	for {
		d, ok, err := channel.Get(b.name, false)
		require.NoError(t, err)
		if !ok {
			return false
		}
		m, err := inbox.FromHeaders("", header(d))
		require.NoError(t, err)
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := box.Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO public.effect (body) VALUES ($1)", string(d.Body))
				return err
			})
			return err
		}))
		if die(m) {
			return true
		}
		require.NoError(t, d.Ack(false))
	}
}

func TestInbox_AReceiverThatDiesBeforeItAcknowledgesHasEachEffectOnce(t *testing.T) {
	t.Parallel()
	b, pool := newBench(t, nil), pgtest.Database(t)
	box, err := inbox.New(inbox.Config{Receiver: "c", RefuseGaps: true})
	require.NoError(t, err)
	pgtest.Exec(t, pool, box.SQL())
	pgtest.Exec(t, pool, "CREATE TABLE public.effect (n int GENERATED ALWAYS AS IDENTITY, body text)")
	ds := sinktest.Deliveries(1, 30)
	sinktest.Delivered(t, b.sink(t, nil), ds)
	deaths := 0
	die := func(m inbox.Message) bool { return m.Sequence == int64(10*deaths+5) }
	for applyAll(t, b, pool, box, die) {
		deaths++
	}
	require.Equal(t, 3, deaths)
	var want string
	for _, d := range ds {
		want += string(d.Payload)
	}
	require.Equal(t, want, pgtest.Value[string](t, pool, "SELECT string_agg(body, '' ORDER BY n) FROM public.effect"))
}
