package kafka_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// header reads a header for inbox.FromHeaders, as docs/wire.md shows it.
func header(r *kgo.Record) func(name string) string {
	return func(name string) string {
		for _, h := range r.Headers {
			if h.Key == name {
				return string(h.Value)
			}
		}
		return ""
	}
}

// applyAll applies what the topic has, and dies after a COMMIT and before the offset is committed if die says so. It
// returns how many records it has acknowledged.
func applyAll(t *testing.T, b *bench, pool *pgxpool.Pool, box *inbox.Inbox, want int, die func() bool) (acknowledged int) {
	t.Helper()
	receiver, err := kgo.NewClient(kgo.SeedBrokers(b.broker.Addr()), kgo.ConsumerGroup(b.topic), kgo.ConsumeTopics(b.topic),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer receiver.Close()
	for acknowledged < want {
		fetches := receiver.PollRecords(t.Context(), 1)
		require.NoError(t, fetches.Err())
		for _, r := range fetches.Records() {
			m, err := inbox.FromHeaders(r.Topic+"/"+strconv.Itoa(int(r.Partition)), header(r))
			require.NoError(t, err)
			require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := box.Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, "INSERT INTO public.effect (key, body) VALUES ($1, $2)", string(r.Key), string(r.Value))
					return err
				})
				return err
			}))
			if die() {
				return acknowledged
			}
			require.NoError(t, receiver.CommitRecords(t.Context(), r))
			acknowledged++
		}
	}
	return acknowledged
}

func TestInbox_AReceiverThatDiesBeforeItAcknowledgesHasEachEffectOnce(t *testing.T) {
	t.Parallel()
	const records, keys, deaths = 30, 5, 2
	b, pool := newBench(t, 3, nil), pgtest.Database(t)
	box, err := inbox.New(inbox.Config{Receiver: "c"})
	require.NoError(t, err)
	pgtest.Exec(t, pool, box.SQL())
	pgtest.Exec(t, pool, "CREATE TABLE public.effect (n int GENERATED ALWAYS AS IDENTITY, key text, body text)")
	ds := sinktest.Deliveries(1, records)
	want := map[string]string{}
	for i := range ds {
		ds[i].Key = strconv.Itoa(i % keys)
		if i >= records/2 {
			ds[i].Epoch++ // a partition that lags has the worker before
		}
		want[ds[i].Key] += string(ds[i].Payload)
	}
	sinktest.Delivered(t, b.sink(t), ds[:records/2])
	sinktest.Delivered(t, b.sink(t), ds[records/2:])
	acknowledged := 0
	for range deaths {
		handled := 0
		acknowledged += applyAll(t, b, pool, box, records, func() bool { handled++; return handled == 8 })
	}
	acknowledged += applyAll(t, b, pool, box, records-acknowledged, func() bool { return false })
	require.Equal(t, records, acknowledged)
	for key, bodies := range want { // each key in the order of its records
		require.Equal(t, bodies, pgtest.Value[string](t, pool, "SELECT string_agg(body, '' ORDER BY n) FROM public.effect WHERE key = $1", key))
	}
}
