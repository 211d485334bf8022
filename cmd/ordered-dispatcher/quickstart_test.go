package main_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const quickstarts = "../../docs/quickstart.md"

// quickstart carries out the table and one section of docs/quickstart.md.
func quickstart(t *testing.T, section string, pairs ...string) *page {
	t.Helper()
	p := quickstartPage(t, pairs...)
	p.carryOut(section)
	return p
}

func quickstartPage(t *testing.T, pairs ...string) *page {
	t.Helper()
	pgtest.Require(t, "python3")
	p := openPage(t, quickstarts, pgtest.URL(t), pairs...)
	p.carryOut("The table")
	return p
}

// Each section has a test below.
func TestQuickstart_HasASectionForEachSink(t *testing.T) {
	t.Parallel()
	p := openPage(t, quickstarts, pgtest.URL(t))
	require.Equal(t, []string{"The table", "stdout", "webhook", "sql", "exec", "redis", "nats", "kafka", "rabbitmq", "pubsub", "watermill"}, p.headings())
}

func TestQuickstart_Stdout(t *testing.T) {
	t.Parallel()
	quickstart(t, "stdout")
}

func TestQuickstart_Webhook(t *testing.T) {
	t.Parallel()
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	quickstart(t, "webhook", "8000", strconv.Itoa(port))
}

func TestQuickstart_SQL(t *testing.T) {
	t.Parallel()
	quickstart(t, "sql")
}

func TestQuickstart_Exec(t *testing.T) {
	t.Parallel()
	quickstart(t, "exec")
}

func TestQuickstart_Redis(t *testing.T) {
	t.Parallel()
	pgtest.Require(t, "redis-cli")
	server, err := broker.StartRedis(t.Context(), 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.Background())) })
	_, port, err := net.SplitHostPort(server.Addr())
	require.NoError(t, err)
	quickstart(t, "redis", "127.0.0.1:6379", server.Addr(), "-p 6379", "-p "+port, "secret-password", broker.RedisPassword)
}

func TestQuickstart_NATS(t *testing.T) {
	t.Parallel()
	server := brokertest.NewNATS(t, broker.NATSConfig{})
	quickstart(t, "nats", "127.0.0.1:4222", server.Addr(), "secret-password", broker.NATSPassword)
	connection, err := client.Connect(server.URL(server.Addr()))
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	admin, err := jetstream.New(connection)
	require.NoError(t, err)
	orders, err := admin.Stream(t.Context(), "ORDERS")
	require.NoError(t, err)
	for _, subject := range []string{"orders.1", "orders.2", "orders.3"} {
		info, err := orders.Info(t.Context(), jetstream.WithSubjectFilter(subject))
		require.NoError(t, err)
		require.EqualValues(t, 2, info.State.Subjects[subject], "the backfill has a message of its own for %s", subject)
	}
}

func TestQuickstart_Kafka(t *testing.T) {
	t.Parallel()
	pgtest.Require(t, "kcat")
	server := brokertest.NewKafka(t, broker.KafkaConfig{})
	c, err := kgo.NewClient(kgo.SeedBrokers(server.Addr()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := quickstartPage(t, "127.0.0.1:9092", server.Addr())
	p.instead("kafka-topics.sh --bootstrap-server "+server.Addr()+" --create --topic orders --partitions 1\n", func() {
		_, err = kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, nil, "orders")
		require.NoError(t, err)
	})
	p.carryOut("kafka")
}

func TestQuickstart_RabbitMQ(t *testing.T) {
	t.Parallel()
	python := brokertest.Python(t, "pika")
	server := brokertest.SharedRabbitMQ(t)
	address, vhost := server.Addr(), "quickstart"
	for _, args := range [][]string{{"add_vhost", vhost}, {"set_permissions", "-p", vhost, broker.RabbitMQUser, ".*", ".*", ".*"}} {
		_, err := server.Control(t.Context(), args...)
		require.NoError(t, err)
	}
	quickstart(t, "rabbitmq", "127.0.0.1:5672/", address+"/"+vhost, "python3 consumer.py", python+" consumer.py",
		"secret-password", broker.RabbitMQPassword)
}

func TestQuickstart_PubSub(t *testing.T) {
	t.Parallel()
	server := pstest.NewServer()
	t.Cleanup(func() { _ = server.Close() })
	p := quickstartPage(t, "127.0.0.1:8085", server.Addr)
	p.instead("gcloud pubsub topics create orders --project shop\n"+
		"gcloud pubsub subscriptions create orders-all --project shop --topic orders --enable-message-ordering\n", func() {
		const topic = "projects/shop/topics/orders"
		_, err := server.GServer.CreateTopic(t.Context(), &pb.Topic{Name: topic})
		require.NoError(t, err)
		_, err = server.GServer.CreateSubscription(t.Context(), &pb.Subscription{
			Name: "projects/shop/subscriptions/orders-all", Topic: topic, AckDeadlineSeconds: 60, EnableMessageOrdering: true})
		require.NoError(t, err)
	})
	p.carryOut("pubsub")
	var customers []string
	keys := map[string]int{}
	for _, m := range server.Messages() {
		customers = append(customers, m.OrderingKey)
		keys[m.Attributes["ordered-dedup-key"]]++
	}
	require.Equal(t, "Ada Grace Edsger Ada Grace Edsger", strings.Join(customers, " "))
	require.Len(t, keys, 3)
}
