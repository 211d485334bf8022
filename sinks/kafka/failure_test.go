package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// TestDeliverBatch_ATopicThatDoesNotExistIsNoAttemptOfTheRecord: it may be the first record over a connection, or come behind
// those of another topic, and of a transaction it is the only one that is not sent.
func TestDeliverBatch_ATopicThatDoesNotExistIsNoAttemptOfTheRecord(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]string{"without a transaction": "", "in a transaction": "x"} {
		for before := range 3 {
			t.Run(fmt.Sprintf("%s, behind %d", name, before), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, 1, nil)
				b.create(t, b.topic+".paid", 1, nil)
				s := b.sink(t, func(c *kafka.Config) {
					c.Topic, c.Timeout = c.Topic+".{{lower .Type}}", 9*time.Second // a third of it until the missing topic is believed
					if transactional != "" {
						c.TransactionalID = b.topic
					}
				})
				ds := sinktest.Deliveries(1, 5)
				for i := range ds {
					if i != before {
						ds[i].Type = "paid"
					}
				}
				n, err := sinktest.Deliver(t, s, ds)
				require.Equal(t, before, n, "%v", err)
				require.ErrorContains(t, err, "UNKNOWN_TOPIC_OR_PARTITION")
				require.ErrorContains(t, err, "make the topic, or correct topic")
				require.Equal(t, "unreached", sinktest.Class(err), "an attempt of the record: %v", err)
				b.create(t, b.topic+".made", 1, nil)
				sinktest.Delivered(t, s, ds[before:])
				require.Equal(t, fmt.Sprint(before+1), sequences(readTopic(t, b.broker.Addr(), b.topic+".made")))
			})
		}
	}
}

func TestDeliverBatch_ATopicThatKafkaCannotNameIsPermanent(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	s := b.sink(t, func(c *kafka.Config) { c.Topic = `{{if eq .Type "odd"}}a b{{else}}` + b.topic + `{{end}}` })
	ds := sinktest.Deliveries(1, 10)
	ds[4].Type = "odd"
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 4, n)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, `"a b"`)
	require.Equal(t, upTo(4), sequences(b.read(t)))
}

func TestDeliverBatch_LogsIn(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, nil)
	for i, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		login := func(password string) *kafka.Sink {
			return sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{b.broker.AddrSASL()}, Topic: b.topic,
				SASL: kafka.SASL{Mechanism: mechanism, User: broker.KafkaUser, Password: password}})
		}
		_, err := sinktest.Deliver(t, login("wrong-password"), sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "nothing was sent", mechanism)
		require.ErrorContains(t, err, "correct user and password", mechanism)
		require.NotContains(t, err.Error(), "wrong-password")
		require.True(t, processor.IsRefused(err), err)
		s := login(broker.KafkaPassword)
		_, err = sinktest.Deliver(t, s, sinktest.Deliveries(i+1, 1))
		require.NoError(t, err, mechanism)
	}
	require.Equal(t, upTo(3), sequences(b.read(t)))
	s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{b.broker.AddrSASL()}, Topic: b.topic})
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "it may expect TLS or sasl")
}

func TestDeliverBatch_NamesASettingThatTheBrokerDoesNotExpect(t *testing.T) {
	t.Parallel()
	k := brokertest.SharedKafka(t)
	for _, c := range []struct {
		config kafka.Config
		fix    string
	}{
		{kafka.Config{TLS: &tls.Config{}}, "or plain TCP where tls is given"},
		{kafka.Config{SASL: kafka.SASL{Mechanism: "SCRAM-SHA-512", User: broker.KafkaUser, Password: broker.KafkaPassword}}, "leave sasl out"},
	} {
		c.config.Brokers, c.config.Topic = []string{k.Addr()}, "never-reached"
		s := sinktest.Made(t, kafka.New, c.config)
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "nothing was sent")
		require.ErrorContains(t, err, c.fix)
	}
}

func TestDeliverBatch_TLSWithAClientCertificate(t *testing.T) {
	t.Parallel()
	certificates := brokertest.NewCertificates(t)
	k := brokertest.NewKafka(t, broker.KafkaConfig{TLS: &broker.KafkaTLS{CA: certificates.CA, Cert: certificates.ServerCert, Key: certificates.ServerKey}})
	b := benchOf(t, k, 1, nil)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificates.CA))
	pair, err := tls.X509KeyPair(certificates.ClientCert, certificates.ClientKey)
	require.NoError(t, err)
	for _, client := range []struct {
		config *tls.Config
		taken  bool
	}{
		{&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, true},
		{&tls.Config{RootCAs: roots}, false},
		{&tls.Config{Certificates: []tls.Certificate{pair}}, false},
	} {
		s := sinktest.Made(t, kafka.New, kafka.Config{Brokers: []string{k.AddrTLS()}, Topic: b.topic, TLS: client.config})
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.Equal(t, client.taken, err == nil, err)
		require.False(t, processor.IsPermanent(err))
	}
	require.Equal(t, "1", sequences(b.read(t)))
}

func TestDeliverBatch_ABrokerThatIsKilledLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafka.Config){"idempotent": nil, "transactional": transactional} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := brokertest.NewKafka(t, broker.KafkaConfig{})
			b := benchOf(t, k, 1, nil)
			s := b.sink(t, func(c *kafka.Config) { c.Timeout = time.Minute }, change)
			const records = 6000
			killAt := []int{1000, 3000}
			var crash chan error // of the crash under way
			until := time.Now().Add(5 * time.Minute)
			for ds := sinktest.Deliveries(1, records); len(ds) > 0; {
				if crash == nil && len(killAt) > 0 && records-len(ds) >= killAt[0] {
					crash, killAt = make(chan error, 1), killAt[1:]
					go func() { crash <- errors.Join(k.Kill(context.Background()), k.Start(context.Background())) }()
				}
				n, err := sinktest.Deliver(t, s, ds[:min(50, len(ds))])
				require.False(t, processor.IsPermanent(err), err)
				require.True(t, time.Now().Before(until), err)
				ds = ds[n:]
				if err != nil {
					time.Sleep(20 * time.Millisecond) // as a processor does
				}
				select {
				case err := <-crash:
					require.NoError(t, err)
					crash = nil
				default:
				}
			}
			require.Empty(t, killAt)
			if crash != nil {
				require.NoError(t, waittest.Receive(t, crash, "the broker has started again"))
			}
			require.Equal(t, upTo(records), sequences(b.read(t)))
		})
	}
}
