package rabbitmq_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]amqp.Table{
		"classic": nil,
		"quorum":  {"x-queue-type": "quorum"},
		"stream":  {"x-queue-type": "stream"},
	} {
		for _, window := range []int{1, 20} {
			t.Run(fmt.Sprintf("%s, window %d", name, window), func(t *testing.T) {
				t.Parallel()
				sinktest.Run(t, func(t *testing.T) sinktest.Subject {
					b := newBench(t, queue)
					return sinktest.Subject{
						Sink:     b.sink(t, func(c *rabbitmq.Config) { c.Window = window }),
						Received: b.received,
						Header:   b.headers,
						Refuse:   func(t testing.TB, _ string) func() { return b.refuse(t) },
						Deny: func(t testing.TB) (processor.BatchSink, func()) {
							return b.sink(t, func(c *rabbitmq.Config) {
								c.URL = strings.Replace(c.URL, broker.RabbitMQPassword, "wrong-password", 1)
							}), func() {}
						},
						Away:    b.away,
						Silence: func(testing.TB) { b.link.Stall() },
						Lose:    sinktest.Lose(b.link, sinktest.Payload),
						Another: func(t testing.TB, _ string) processor.BatchSink {
							return b.sink(t, func(c *rabbitmq.Config) { c.Window = window })
						},
						Empty:    b.empty(queue),
						TooLarge: 1_000_001, // max_message_size of the tests' brokers
						Order:    window == 1,
					}
				})
			})
		}
	}
}

func TestDeliverBatch_MessageCarriesTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	d := sinktest.Deliveries(9007199254740993, 1)[0]
	d.Type, d.Headers = "Made", map[string]string{"traceparent": "00-1", "ordered-epoch": "99"}
	sinktest.Delivered(t, b.sink(t, nil), []processor.Delivery{d})
	require.Equal(t, []message{{
		MessageID: d.DedupKey(), DeliveryMode: 2, Type: "Made", Timestamp: d.CreatedAt.Unix(), Body: string(d.Payload),
		Headers: map[string]string{
			"ordered-process": "sms", "ordered-origin": "here", "ordered-sequence": "9007199254740993", "ordered-epoch": "3", "ordered-attempt": "1",
			"ordered-position": string(d.Position), "ordered-dedup-key": d.DedupKey(), "ordered-key": "customer", "ordered-type": "Made",
			"ordered-version": "1", "ordered-created-at": d.CreatedAt.Format(time.RFC3339Nano), "content-type": "application/json",
			"traceparent": "00-1",
		},
	}}, b.read(t))
}

// The properties of AMQP hold 255 bytes, and the headers of the contract hold more.
func TestDeliverBatch_WhatIsTooLongForAPropertyTravelsInItsHeader(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *rabbitmq.Config) { c.RoutingKey = "k" })
	ds := sinktest.Deliveries(1, 3)
	ds[0].Type = strings.Repeat("t", 255)
	ds[1].Type, ds[1].ID, ds[1].Key = strings.Repeat("t", 256), strings.Repeat("i", 300), strings.Repeat("k", 300)
	sinktest.Delivered(t, s, ds)
	all := b.read(t)
	require.Len(t, all, 3)
	for i, d := range ds {
		require.Equal(t, d.Type, all[i].Headers["ordered-type"])
		require.Equal(t, d.Key, all[i].Headers["ordered-key"])
		require.Equal(t, d.DedupKey(), all[i].Headers["ordered-dedup-key"])
	}
	require.Equal(t, ds[0].Type, all[0].Type)
	require.Equal(t, ds[0].DedupKey(), all[0].MessageID)
	require.Empty(t, all[1].Type)
	digest := sha256.Sum256([]byte(ds[1].DedupKey()))
	require.Equal(t, "sha256:"+hex.EncodeToString(digest[:]), all[1].MessageID)

	ds = sinktest.Deliveries(4, 1)
	ds[0].Type = strings.Repeat("t", 256)
	n, err := b.sink(t, nil).DeliverBatch(t.Context(), ds) // its routing key is the type
	require.Zero(t, n)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, "its routing key has 256 bytes; AMQP takes 255, in UTF-8")
	sinktest.Delivered(t, s, sinktest.Deliveries(5, 1))
}

// A queue that is full and refuses: the broker says nack.
func TestDeliverBatch_NackIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, amqp.Table{"x-max-length": 3, "x-overflow": "reject-publish"})
	s := b.sink(t, nil)
	ds := sinktest.Deliveries(1, 5)
	n, err := s.DeliverBatch(t.Context(), ds)
	require.ErrorContains(t, err, "the broker refused it (nack)")
	require.False(t, processor.IsPermanent(err))
	require.Equal(t, 3, n)
	_, err = b.admin.QueuePurge(b.name, false)
	require.NoError(t, err)
	sinktest.Delivered(t, s, ds[3:])
}

// With a window, what stands behind a refused record may land before it: the
// order a consumer sees then is that of docs/sinks/rabbitmq.md.
func TestDeliverBatch_AWindowMayShowAnotherOrderAfterARefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := b.sink(t, func(c *rabbitmq.Config) { c.Window = 4 })
	ds := sinktest.Deliveries(1, 4)
	ds[1].Type = "refused"
	restore := b.refuse(t)
	n, err := s.DeliverBatch(t.Context(), ds)
	require.ErrorContains(t, err, "returned it: 312 NO_ROUTE; bind a queue")
	require.Equal(t, 1, n)
	restore()
	sinktest.Delivered(t, s, ds[1:])
	var sequences []string
	for _, m := range b.read(t) {
		sequences = append(sequences, m.Headers["ordered-sequence"])
	}
	require.Equal(t, "1 3 4 2 3 4", strings.Join(sequences, " "))
}

func TestDeliverBatch_ABrokerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	rabbit := brokertest.NewRabbitMQ(t, broker.RabbitMQConfig{})
	connection, err := amqp.Dial(rabbit.URL(rabbit.Addr()))
	require.NoError(t, err)
	admin, err := connection.Channel()
	require.NoError(t, err)
	_, err = admin.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: rabbit.URL(rabbit.Addr()), RoutingKey: "q"})

	const records = 2000
	killed := make(chan error, 1)
	var acknowledged int
	until := time.Now().Add(5 * time.Minute)
	for ds := sinktest.Deliveries(1, records); len(ds) > 0; {
		if acknowledged >= 500 && cap(killed) == 1 && len(killed) == 0 {
			go func() { killed <- rabbit.Kill(t.Context()) }()
			require.NoError(t, waittest.Receive(t, killed, "the broker is killed"))
			killed = make(chan error)
			require.NoError(t, rabbit.Start(t.Context()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		n, err := s.DeliverBatch(ctx, ds[:min(100, len(ds))])
		cancel()
		acknowledged += n
		ds = ds[n:]
		require.False(t, processor.IsPermanent(err), err)
		require.True(t, time.Now().Before(until), err)
	}
	b := &bench{broker: rabbit, name: "q", kind: "queue"}
	next := 1
	for _, m := range b.received(t) {
		want := sinktest.Deliveries(next, 1)[0]
		if next > 1 && m.DedupKey == sinktest.Deliveries(next-1, 1)[0].DedupKey() {
			continue // sent again, its confirm was lost
		}
		require.Equal(t, want.DedupKey(), m.DedupKey)
		next++
	}
	require.Equal(t, records+1, next)
}

func TestDeliverBatch_SaysWhatToCorrectOfARefusedLogin(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, c := range []struct {
		from, to, fix string
		refused       bool // by the first answer
	}{
		{broker.RabbitMQPassword, "wrong-password", "correct user and password in url", false},
		{b.broker.Addr() + "/", b.broker.Addr() + "/elsewhere", "correct the vhost", true},
	} {
		s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: strings.Replace(b.broker.URL(b.broker.Addr()), c.from, c.to, 1), Exchange: b.name})
		n, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.Zero(t, n)
		require.ErrorContains(t, err, "nothing was sent")
		require.ErrorContains(t, err, c.fix)
		require.NotContains(t, err.Error(), "wrong-password")
		require.Equal(t, c.refused, processor.IsRefused(err), err)
		_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.True(t, processor.IsRefused(err), err)
	}
}

// TestDeliverBatch_ALinkThatBreaksAtTheLoginIsNoRefusedLogin: the client says that the password is wrong.
func TestDeliverBatch_ALinkThatBreaksAtTheLoginIsNoRefusedLogin(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", b.broker.Addr())
			if err != nil {
				return
			}
			_, _ = io.CopyN(broker, conn, int64(len("AMQP0091")))
			go func() { _, _ = io.Copy(conn, broker) }()
			_, _ = conn.Read(make([]byte, 1)) // of the login
			_, _ = conn.Close(), broker.Close()
		}
	}()
	s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: b.broker.URL(proxy.Addr().String()), Exchange: b.name})
	for range 3 {
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "the connection was closed at the login")
		require.Equal(t, "unreached", sinktest.Class(err), err)
	}
}

func TestDeliverBatch_SaysWhereNobodyListens(t *testing.T) {
	t.Parallel()
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s, err := rabbitmq.New(rabbitmq.Config{URL: "amqp://dispatcher:CANARY@" + address, Exchange: "orders"})
	require.NoError(t, err)
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, address+": connect: connection refused; start RabbitMQ there, or correct host and port in url")
	require.NotContains(t, err.Error(), "CANARY")
}

func TestConfig_NamesTheVirtualHostAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"amqp://u:CANARY@rabbit":           "amqp://rabbit:5672/",
		"amqp://u:CANARY@rabbit/":          "amqp://rabbit:5672/",
		"amqp://u:CANARY@rabbit/%2f":       "amqp://rabbit:5672/",
		"amqps://u:CANARY@rabbit/sales":    "amqps://rabbit:5671/sales",
		"amqp://u:CANARY@rabbit/sales%2fa": "amqp://rabbit:5672/sales%2Fa",
		"amqp://u:CANARY@[::1]:5673/sales": "amqp://[::1]:5673/sales",
	} {
		require.Equal(t, `exchange "orders" of `+want, rabbitmq.Config{URL: url, Exchange: "orders"}.String(), url)
	}
}
