package rabbitmq_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// alarmed is a queue of a broker that no other test has, since it can have an alarm.
type alarmed struct {
	*bench
	sink *rabbitmq.Sink
}

func newAlarmed(t *testing.T, rabbit *broker.RabbitMQ, window int) alarmed {
	t.Helper()
	name := fmt.Sprint("q", benches.Add(1))
	connection, err := amqp.Dial(rabbit.URL(rabbit.Addr()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	admin, err := connection.Channel()
	require.NoError(t, err)
	_, err = admin.QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
	s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: rabbit.URL(rabbit.Addr()), RoutingKey: name, Window: window, Timeout: time.Minute})
	return alarmed{&bench{broker: rabbit, name: name, kind: "queue"}, s}
}

// begin raises the alarm. Its connections hear of it a moment later, so it delivers records
// until one of them meets it. It returns how many the queue has, and the error.
func (a alarmed) begin(t *testing.T, each int) (arrived int, err error) {
	t.Helper()
	_, err = a.broker.Control(t.Context(), "set_vm_memory_high_watermark", "0.00001")
	require.NoError(t, err)
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		n, err := a.deliver(t, 2*time.Second, sinktest.Deliveries(arrived+1, each)) // a confirm that is only late is no alarm
		arrived += n
		if err != nil {
			return arrived, err
		}
	}
	t.Fatal("no record met the alarm")
	return 0, nil
}

func (a alarmed) end(t *testing.T) {
	t.Helper()
	_, err := a.broker.Control(t.Context(), "set_vm_memory_high_watermark", "0.9")
	require.NoError(t, err)
}

func (a alarmed) deliver(t *testing.T, patience time.Duration, ds []processor.Delivery) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return a.sink.DeliverBatch(ctx, ds)
}

// requireWaiting: the call sent nothing, and says why.
func requireWaiting(t *testing.T, n int, err error) {
	t.Helper()
	require.Zero(t, n)
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "the broker takes no messages (low on memory); free memory or disk there")
	require.True(t, processor.IsUnreached(err), err)
}

// requireOnce: the queue has so many records, each once.
func (a alarmed) requireOnce(t *testing.T, records int) {
	t.Helper()
	var want, got []string
	for _, d := range sinktest.Deliveries(1, records) {
		want = append(want, d.DedupKey())
	}
	for _, m := range a.received(t) {
		got = append(got, m.DedupKey)
	}
	require.Equal(t, strings.Join(want, " "), strings.Join(got, " "))
}

// The broker publishes what it has of a connection that hung up during the alarm: each
// attempt over another one would add a copy.
func TestDeliverBatch_AMessageUnderAnAlarmIsWaitedForAndNotSentAgain(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{})
	for name, c := range map[string]struct{ window, each int }{"one record": {1, 1}, "a window": {20, 20}} {
		t.Run(name, func(t *testing.T) {
			a := newAlarmed(t, rabbit, c.window)
			arrived, err := a.begin(t, c.each)
			require.ErrorContains(t, err, "the broker may have the record")
			require.ErrorContains(t, err, "the broker takes no messages (low on memory); free memory or disk there")
			require.True(t, outcome.IsOutage(err), err)
			require.True(t, processor.IsUnreached(err), "it is no attempt of the record: %v", err)
			require.True(t, a.sink.Pending())
			ds := sinktest.Deliveries(arrived+1, c.each)
			for range 3 {
				ds[0].Attempt++
				n, err := a.deliver(t, 100*time.Millisecond, ds)
				requireWaiting(t, n, err)
				require.True(t, outcome.IsUnknown(err), "its message is on its way: %v", err)
			}
			a.end(t)
			n, err := a.deliver(t, time.Minute, ds)
			require.NoError(t, err)
			require.Equal(t, c.each, n)
			a.requireOnce(t, arrived+c.each)
		})
	}
}

// The confirm comes after the word that the alarm is over. A call that ends in between keeps
// its message, too.
func TestAlarm_OneThatEndsDuringACallHasMetIt(t *testing.T) {
	t.Parallel()
	begins, ends := amqp.Blocking{Active: true, Reason: "low on disk"}, amqp.Blocking{}
	for _, c := range []struct {
		words         []amqp.Blocking
		during, after bool
	}{
		{nil, false, false},
		{[]amqp.Blocking{begins}, true, true},
		{[]amqp.Blocking{begins, ends}, true, false},
	} {
		during, after, err := rabbitmq.Met(c.words...)
		require.Equal(t, c.during, during, c.words)
		require.Equal(t, c.after, after, c.words)
		require.True(t, outcome.IsUnknown(err), err)
		require.Equal(t, c.during, processor.IsUnreached(err), "it is no attempt of the record: %v", c.words)
	}
}

// The message on its way is of an earlier lease, of another record, or of an older version of this one.
func TestDeliverBatch_AMessageUnderAnAlarmCountsForNoOtherRecord(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{})
	for name, change := range map[string]func(*processor.Delivery){
		"a later epoch":     func(d *processor.Delivery) { d.Epoch++ },
		"another number":    func(d *processor.Delivery) { d.Sequence++ },
		"another payload":   func(d *processor.Delivery) { d.Payload = []byte(`{"changed": true}`) },
		"the record behind": func(d *processor.Delivery) { *d = sinktest.Deliveries(int(d.Sequence)+1, 1)[0] },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlarmed(t, rabbit, 1)
			arrived, err := a.begin(t, 1)
			require.True(t, outcome.IsUnknown(err), err)
			ds := sinktest.Deliveries(arrived+1, 1)
			payload := ds[0].Payload
			change(&ds[0])
			n, err := a.deliver(t, 100*time.Millisecond, ds)
			requireWaiting(t, n, err)
			require.False(t, outcome.IsUnknown(err), err)
			a.end(t)
			n, err = a.deliver(t, time.Minute, ds)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			all := a.received(t)
			require.Len(t, all, arrived+2)
			require.Equal(t, string(payload), all[arrived].Payload)
			require.Equal(t, sinktest.Message{DedupKey: ds[0].DedupKey(), Payload: string(ds[0].Payload)}, all[arrived+1])
		})
	}
}

// TestDeliverBatch_AConnectionThatEndsUnderAnAlarmIsNoAttempt: the broker had not read the record, which was put aside and
// overtaken.
func TestDeliverBatch_AConnectionThatEndsUnderAnAlarmIsNoAttempt(t *testing.T) {
	t.Parallel()
	a := newAlarmed(t, brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{}), 1)
	arrived, err := a.begin(t, 1)
	require.True(t, a.sink.Pending(), err)
	ended := make(chan error, 1)
	go func() {
		_, err := a.deliver(t, 20*time.Second, sinktest.Deliveries(arrived+1, 1))
		ended <- err
	}()
	_, err = a.broker.Control(t.Context(), "close_all_connections", "maintenance")
	require.NoError(t, err)
	err = waittest.Receive(t, ended, "the delivery ends")
	require.ErrorContains(t, err, "the broker may have the record")
	require.True(t, processor.IsUnreached(err), err)
	require.True(t, outcome.IsOutage(err), err)
}

// TestDeliverBatch_ABrokerThatEndsAllConnectionsIsNoAttempt: what it says then is of no record, though it may have the one
// that is on its way.
func TestDeliverBatch_ABrokerThatEndsAllConnectionsIsNoAttempt(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{})
	way, err := link.Listen(rabbit.Addr())
	require.NoError(t, err)
	defer way.Close()
	s, err := rabbitmq.New(rabbitmq.Config{URL: rabbit.URL(way.Addr()), RoutingKey: newAlarmed(t, rabbit, 1).name, Timeout: time.Minute})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	held := way.Hold(link.Client, sinktest.Payload)
	ended := make(chan error, 1)
	go func() {
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		ended <- err
	}()
	waittest.Receive(t, held, "the record is on its way")
	_, err = rabbit.Control(t.Context(), "close_all_connections", "maintenance")
	require.NoError(t, err)
	err = waittest.Receive(t, ended, "the delivery ends")
	require.ErrorContains(t, err, "CONNECTION_FORCED")
	require.True(t, processor.IsUnreached(err), err)
	require.True(t, outcome.IsOutage(err), err)
}

func TestDeliverBatch_WaitsWhileTheBrokerBlocksPublishers(t *testing.T) {
	t.Parallel()
	a := newAlarmed(t, brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{}), 1)
	arrived, err := a.begin(t, 1)
	require.True(t, outcome.IsUnknown(err), err)
	delivered := make(chan error, 1)
	go func() {
		_, err := a.sink.DeliverBatch(t.Context(), sinktest.Deliveries(arrived+1, 2))
		delivered <- err
	}()
	a.end(t)
	require.NoError(t, waittest.Receive(t, delivered, "the delivery ends"))
	a.requireOnce(t, arrived+2)
}

// A message that is larger than the buffers of the network is cut off in its middle. The broker
// does not publish half a message, so it arrives once.
func TestDeliverBatch_AMessageThatAnAlarmCutsOffKeepsTimeout(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{})
	_, err := rabbit.Control(t.Context(), "eval", "application:set_env(rabbit, max_message_size, 134217728).")
	require.NoError(t, err)
	first, large := newAlarmed(t, rabbit, 1), newAlarmed(t, rabbit, 1)
	_, err = first.begin(t, 1)
	require.True(t, outcome.IsUnknown(err), err)
	s, err := rabbitmq.New(rabbitmq.Config{URL: rabbit.URL(rabbit.Addr()), RoutingKey: large.name, Timeout: time.Second})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	ds := sinktest.Deliveries(1, 1)
	ds[0].Payload = bytes.Repeat([]byte("1"), 32<<20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		n, err := s.DeliverBatch(ctx, ds)
		require.Zero(t, n)
		require.NoError(t, ctx.Err(), "the call outlived timeout: %v", err)
		require.ErrorContains(t, err, "the broker may have the record: not written within 1s: context deadline exceeded: "+
			"the broker takes no messages ([…]); free memory or disk there")
		require.True(t, outcome.IsOutage(err), err)
		require.True(t, processor.IsUnreached(err), "it is no attempt of the record: %v", err)
		require.False(t, s.Pending(), "nothing is to be waited for")
	}
	first.end(t)
	n, err := large.deliver(t, time.Minute, ds)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	large.requireOnce(t, 1)
}

// Under an alarm the broker does not even read that the connection is to be closed, and its
// heartbeats go on.
func TestClose_DoesNotWaitForABrokerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, nil)
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.NoError(t, err)
	b.link.Hold(link.Client, func([]byte) bool { return true })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("Close waits")
	}
}
