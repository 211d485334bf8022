package nats_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// applyAll applies what the stream has, and dies after a COMMIT and before the acknowledgement if die says so. It returns
// how many claims of workers it met, and whether it has died.
func applyAll(t *testing.T, b *bench, pool *pgxpool.Pool, box *inbox.Inbox, die func(inbox.Message) bool) (claims int, died bool) {
	t.Helper()
	connection, err := client.Connect("nats://"+b.addr, client.UserInfo(user, password))
	require.NoError(t, err)
	defer connection.Close()
	js, err := jetstream.New(connection)
	require.NoError(t, err)
	receiver, err := js.Consumer(t.Context(), stream, "billing")
	require.NoError(t, err)
	for until := time.Now().Add(2 * time.Minute); ; {
		info, err := receiver.Info(t.Context())
		require.NoError(t, err)
		require.True(t, time.Now().Before(until), "%+v", info)
		if info.NumPending == 0 && info.NumAckPending == 0 {
			return claims, false
		}
		d, err := receiver.Next(jetstream.FetchMaxWait(time.Minute))
		require.NoError(t, err)
		m, err := inbox.FromNATS("", d.Headers().Get)
		if errors.Is(err, inbox.ErrClaim) {
			claims++
			require.NoError(t, d.DoubleAck(t.Context()))
			continue
		}
		require.NoError(t, err)
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := box.Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO public.effect (body) VALUES ($1)", string(d.Data()))
				return err
			})
			return err
		}))
		if die(m) {
			return claims, true
		}
		require.NoError(t, d.DoubleAck(t.Context()))
	}
}

func TestInbox_AReceiverThatDiesBeforeItAcknowledgesHasEachEffectOnce(t *testing.T) {
	t.Parallel()
	b, pool := newBench(t, nil), pgtest.Database(t)
	box, err := inbox.New(inbox.Config{Receiver: "c", RefuseGaps: true})
	require.NoError(t, err)
	pgtest.Exec(t, pool, box.SQL())
	pgtest.Exec(t, pool, "CREATE TABLE public.effect (n int GENERATED ALWAYS AS IDENTITY, body text)")
	_, err = b.admin.CreateConsumer(t.Context(), stream, jetstream.ConsumerConfig{
		Durable: "billing", AckPolicy: jetstream.AckExplicitPolicy, // no filter: it meets the worker's claim
		MaxAckPending: 1, AckWait: time.Second, // one at a time, so in order
	})
	require.NoError(t, err)
	ds := sinktest.Deliveries(1, 30)
	for i := range ds {
		ds[i].ID = fmt.Sprintf("%d%% é ", i) // its header is encoded
	}
	sinktest.Delivered(t, b.sink(t, nil), ds)
	deaths, claims := 0, 0
	die := func(m inbox.Message) bool { return m.Sequence == int64(10*deaths+5) }
	for {
		met, died := applyAll(t, b, pool, box, die)
		claims += met
		if !died {
			break
		}
		deaths++
	}
	require.Equal(t, 3, deaths)
	require.Equal(t, 1, claims)
	var want string
	for _, d := range ds {
		want += string(d.Payload)
	}
	require.Equal(t, want, pgtest.Value[string](t, pool, "SELECT string_agg(body, '' ORDER BY n) FROM public.effect"))
	require.Equal(t, ds[0].DedupKey(), pgtest.Value[string](t, pool, "SELECT dedup_key FROM public.inbox ORDER BY received_at LIMIT 1"))
}
