package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){
		"window 1":    func(c *kafka.Config) { c.Window = 1 },
		"window":      nil,
		"transaction": transactional,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				b := newBench(t, 1, nil)
				sink := func(t testing.TB, process string) processor.BatchSink {
					return keyless(b.sink(t, func(c *kafka.Config) { c.Timeout = 5 * time.Second }, change, func(c *kafka.Config) {
						if c.TransactionalID != "" {
							c.TransactionalID += process
						}
					}))
				}
				return sinktest.Subject{
					Sink:     sink(t, "sms"),
					Another:  sink,
					Empty:    b.empty,
					Lose:     sinktest.Lose(b.link, decides(name)),
					Received: b.received,
					Header:   b.headers,
					Refuse:   b.refuse,
					Deny: func(t testing.TB) (processor.BatchSink, func()) {
						return b.sink(t, func(c *kafka.Config) {
							c.Brokers = []string{b.broker.AddrSASL()}
							c.SASL = kafka.SASL{Mechanism: "PLAIN", User: broker.KafkaUser, Password: "wrong-password"}
						}), func() {}
					},
					Away:     b.away,
					Silence:  func(testing.TB) { b.link.Stall() },
					TooLarge: 1 << 20,
					Order:    true,
				}
			})
		})
	}
}

// decides matches the request after which the records may count.
func decides(name string) func([]byte) bool {
	key := kmsg.Produce
	if name == "transaction" {
		key = kmsg.EndTxn
	}
	return func(written []byte) bool {
		return len(written) > 6 && binary.BigEndian.Uint16(written[4:]) == uint16(key)
	}
}

// empty deletes what the topic has.
func (b *bench) empty(t testing.TB) {
	ends, err := b.admin.ListEndOffsets(t.Context(), b.topic)
	require.NoError(t, err)
	answers, err := b.admin.DeleteRecords(t.Context(), ends.Offsets())
	require.NoError(t, err)
	require.NoError(t, answers.Error())
}

// refuse lets the topic take only records with a key.
func (b *bench) refuse(t testing.TB, _ string) (restore func()) {
	b.compact(t, "compact")
	return func() { b.compact(t, "delete") }
}

// compact sets the policy of the topic. Its log hears of it later than who asks for the
// setting, and in order: so a second topic shows when it has.
func (b *bench) compact(t testing.TB, policy string) {
	second := b.topic + ".second"
	topics, err := b.admin.ListTopics(t.Context(), second)
	require.NoError(t, err)
	if !topics.Has(second) {
		b.create(t, second, 1, nil)
	}
	b.alter(t, "cleanup.policy", policy)
	b.alterTopic(t, second, "cleanup.policy", policy)
	require.Eventually(t, func() bool {
		err := b.client.ProduceSync(t.Context(), &kgo.Record{Topic: second, Value: []byte("no key")}).FirstErr()
		return errors.Is(err, kerr.InvalidRecord) == (policy == "compact")
	}, time.Minute, 10*time.Millisecond)
}

// keyless takes the key from records of the type "refused".
func keyless(s *kafka.Sink) processor.BatchSink {
	return &stripped{s}
}

type stripped struct{ *kafka.Sink }

func (s *stripped) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	all := append([]processor.Delivery{}, ds...)
	for i := range all {
		if all[i].Type == "refused" {
			all[i].Key = ""
		}
	}
	return s.Sink.DeliverBatch(ctx, all)
}

func TestDeliverBatch_MessageCarriesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	d := sinktest.Deliveries(9007199254740993, 1)[0]
	d.Type, d.Headers = "Made", map[string]string{"traceparent": "00-1", "ordered-epoch": "99", "Event_ID": "x"}
	sinktest.Delivered(t, b.sink(t, nil), []processor.Delivery{d})
	require.Equal(t, []message{{"0", "0", "customer", string(d.Payload), []string{
		"event_id=" + d.DedupKey(), "ordered-version=1",
		"ordered-process=sms", "ordered-sequence=9007199254740993", "ordered-epoch=3", "ordered-attempt=1",
		"ordered-position=" + string(d.Position), "ordered-dedup-key=" + d.DedupKey(), "ordered-origin=here", "ordered-key=customer", "ordered-type=Made",
		"ordered-created-at=" + d.CreatedAt.Format(time.RFC3339Nano), "content-type=application/json", "traceparent=00-1",
	}}}, b.read(t))
}

// Whoever sends it, and however often it connects.
func TestDeliverBatch_AKeyKeepsItsPartitionAndNoneIsOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, 12, nil)
	const workers, each = 5, 42
	for w := range workers {
		ds := sinktest.Deliveries(1+w*each, each)
		for i := range ds {
			ds[i].Key = []string{"", "a", "b", "c", "d", "e"}[i%6]
		}
		sinktest.Delivered(t, b.sink(t, func(c *kafka.Config) { c.Window = 7 }), ds)
	}
	partitions, last, used := map[string]string{}, map[string]int{}, map[string]bool{}
	all := b.read(t)
	require.Len(t, all, workers*each)
	for _, m := range all {
		if partitions[m.Key] == "" {
			partitions[m.Key] = m.Partition
		}
		require.Equal(t, partitions[m.Key], m.Partition, "key %q", m.Key)
		used[m.Partition] = true
		sequence, err := strconv.Atoi(m.header("ordered-sequence"))
		require.NoError(t, err)
		require.Greater(t, sequence, last[m.Key])
		last[m.Key] = sequence
	}
	require.Greater(t, len(used), 2)
}
