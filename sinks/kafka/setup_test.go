package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// bench is a topic of one test, reached over a link to be broken.
type bench struct {
	broker *broker.Kafka
	link   *link.Link
	client *kgo.Client // past the link
	admin  *kadm.Client
	topic  string
}

// newBench makes a topic of one partition, unless told otherwise.
func newBench(t testing.TB, partitions int32, settings map[string]string) *bench {
	t.Helper()
	return benchOf(t, brokertest.SharedKafka(t), partitions, settings)
}

func benchOf(t testing.TB, broker *broker.Kafka, partitions int32, settings map[string]string) *bench {
	t.Helper()
	client := clientOf(t, broker.Addr())
	b := &bench{broker: broker, link: tcptest.Link(t, broker.Addr()), client: client, admin: kadm.NewClient(client), topic: topicOf(t)}
	b.create(t, b.topic, partitions, settings)
	return b
}

// ownBench is one with a broker of its own, which may be killed and set back.
func ownBench(t testing.TB) *bench {
	t.Helper()
	return benchOf(t, brokertest.NewKafka(t, broker.KafkaConfig{}), 1, nil)
}

// copied is what the broker has, from a moment in which it was down.
func (b *bench) copied(t testing.TB) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, b.broker.Kill(t.Context()))
	require.NoError(t, copyData(b.broker.Data(), copied))
	require.NoError(t, b.broker.Start(t.Context()))
	return copied
}

// setBack kills the broker and starts it with what it had when it was copied.
func (b *bench) setBack(t testing.TB, copied string) {
	t.Helper()
	require.NoError(t, b.broker.Kill(t.Context()))
	require.NoError(t, os.RemoveAll(b.broker.Data()))
	require.NoError(t, copyData(copied, b.broker.Data()))
	require.NoError(t, b.broker.Start(t.Context()))
}

// copyData keeps the owner of the files: the broker runs as another user than root.
func copyData(from, to string) error { return exec.Command("cp", "-a", from, to).Run() }

// others write to the topic.
func (b *bench) others(t testing.TB, n int) {
	t.Helper()
	othersWrite(t, b.client, b.topic, n)
}

var benches atomic.Int64

// topicOf makes a topic's name of a test's, another one each time it runs.
func topicOf(t testing.TB) string {
	return fmt.Sprintf("%s.%d", strings.NewReplacer("/", ".", " ", "_", ",", "").Replace(t.Name()), benches.Add(1))
}

func (b *bench) create(t testing.TB, topic string, partitions int32, settings map[string]string) {
	t.Helper()
	all := map[string]*string{}
	for name, value := range settings {
		all[name] = &value
	}
	require.Eventually(t, func() bool { // its port is open before it answers
		_, err := b.admin.BrokerMetadata(t.Context())
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	answer, err := b.admin.CreateTopic(t.Context(), partitions, 1, all, topic)
	require.NoError(t, err)
	require.NoError(t, answer.Err)
	require.Eventually(t, func() bool { // the broker hears of it from its controller
		topics, err := b.admin.ListTopics(t.Context(), topic)
		return err == nil && topics.Has(topic)
	}, time.Minute, 10*time.Millisecond)
}

func (b *bench) alter(t testing.TB, name, value string) {
	t.Helper()
	b.alterTopic(t, b.topic, name, value)
}

func (b *bench) alterTopic(t testing.TB, topic, name, value string) {
	t.Helper()
	answers, err := b.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	require.NoError(t, err)
	for _, answer := range answers {
		require.NoError(t, answer.Err)
	}
	require.Eventually(t, func() bool { // the broker hears of it from its controller
		configs, err := b.admin.DescribeTopicConfigs(t.Context(), topic)
		if err != nil || len(configs) != 1 {
			return false
		}
		return slices.ContainsFunc(configs[0].Configs, func(c kadm.Config) bool { return c.Key == name && c.MaybeValue() == value })
	}, time.Minute, 10*time.Millisecond)
}

// sink sends to the topic, many at a time unless told otherwise.
func (b *bench) sink(t testing.TB, changes ...func(*kafka.Config)) *kafka.Sink {
	t.Helper()
	s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{b.link.Addr()}, Topic: b.topic, Window: 500}, changes...)
	s.Redirect(b.link.Addr())
	return s
}

// away takes the broker off the network.
func (b *bench) away(testing.TB) (back func()) { return b.link.Away() }

// message is what a client that is not ours finds in the topic.
type message struct {
	Partition, Offset, Key, Value string
	Headers                       []string // name=value
}

// header returns the value of the first header of that name.
func (m message) header(name string) string {
	for _, h := range m.Headers {
		if value, ok := strings.CutPrefix(h, name+"="); ok {
			return value
		}
	}
	return ""
}

// read asks kcat, of librdkafka, which sees what is committed.
func (b *bench) read(t testing.TB, more ...string) []message {
	return readTopic(t, b.broker.Addr(), b.topic, more...)
}

func readTopic(t testing.TB, address, topic string, more ...string) []message {
	t.Helper()
	args := append([]string{"-C", "-b", address, "-t", topic, "-o", "beginning", "-e", "-q", "-f", `%p\x1f%o\x1f%k\x1f%h\x1f%s\x1e`}, more...)
	command := exec.CommandContext(t.Context(), "kcat", args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%v: %s", command, stderr.String())
	var all []message
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x1e"), "\x1e") {
		if parts := strings.Split(line, "\x1f"); len(parts) == 5 {
			all = append(all, message{parts[0], parts[1], parts[2], parts[4], strings.Split(parts[3], ",")})
		}
	}
	return all
}

func (b *bench) received(t testing.TB) []sinktest.Message {
	t.Helper()
	all := []sinktest.Message{}
	for _, m := range b.read(t) {
		all = append(all, sinktest.Message{DedupKey: m.header("event_id"), Payload: m.Value})
	}
	return all
}

// headers of what is in the topic, in its order.
func (b *bench) headers(t testing.TB, name string) []string {
	t.Helper()
	var all []string
	for _, m := range b.read(t) {
		all = append(all, m.header(name))
	}
	return all
}

// sequences of what is in the topic, in its order.
func sequences(all []message) string {
	var text []string
	for _, m := range all {
		text = append(text, m.header("ordered-sequence"))
	}
	return strings.Join(text, " ")
}

// clusterOf is a cluster of one broker that is not Kafka, unless told otherwise.
func clusterOf(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

// old is a cluster before Kafka 2.8: a topic that is made anew there is as an older copy of its data.
func old(t testing.TB, topics ...string) *kfake.Cluster {
	t.Helper()
	return clusterOf(t, kfake.SeedTopics(1, topics...), kfake.MaxVersions(kversion.V2_7_0()))
}

// makeAnew deletes topics and makes them again.
func makeAnew(t testing.TB, cluster *kfake.Cluster, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		require.NoError(t, cluster.DeleteTopic(topic))
		require.NoError(t, cluster.CreateTopic(topic, 1, nil))
	}
}

// clientOf is a client that is not ours.
func clientOf(t testing.TB, brokers ...string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// othersWrite writes records to a topic, one after another.
func othersWrite(t testing.TB, client *kgo.Client, topic string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range n {
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("another's")}).FirstErr())
	}
}

// deliverAll tries again, as a processor does.
func deliverAll(t testing.TB, s *kafka.Sink, sequence, records int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		n, err := sinktest.Deliver(t, s, sinktest.Deliveries(sequence, records))
		sequence, records = sequence+n, records-n
		require.NoError(c, err)
	}, 2*time.Minute, 100*time.Millisecond)
}
