package kafka_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The client reads a connection only while it waits for an answer, so it would write to one that the broker has left.
func TestDeliverBatch_ABrokerThatDiedWhileNothingWasSentIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"plain": func(*kafka.Config) {}, "with transactions": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := brokertest.NewKafka(t, broker.KafkaConfig{})
			b := benchOf(t, k, 1, nil)
			const timeout = 12 * time.Second
			s := sinktest.Made(t, kafka.New, config(k.Addr(), b.topic, timeout, change))
			deliverAll(t, s, 1, 3)
			killed(t, k)
			begin := time.Now()
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(4, 1))
			require.Zero(t, n)
			require.ErrorContains(t, err, "nothing was sent: ")
			require.ErrorContains(t, err, "connection refused")
			require.ErrorContains(t, err, "start the broker there")
			require.Equal(t, "unreached", sinktest.Class(err), err)
			require.Less(t, time.Since(begin), timeout, "a third of the time is for that")
			require.NoError(t, k.Start(t.Context()))
			deliverAll(t, s, 4, 1)
			require.Equal(t, "1 2 3 4", sequences(b.read(t)))
		})
	}
}

func config(address, topic string, timeout time.Duration, change func(*kafka.Config)) kafka.Config {
	c := kafka.Config{Brokers: []string{address}, Topic: topic, Window: 10, Timeout: timeout}
	change(&c)
	return c
}

// killed kills a broker and waits for the end of its connections.
func killed(t testing.TB, k *broker.Kafka) {
	t.Helper()
	conn, err := net.Dial("tcp", k.Addr())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, k.Kill(t.Context()))
	_, _ = io.ReadAll(conn)
	_, err = net.Dial("tcp", k.Addr())
	require.Error(t, err)
}
