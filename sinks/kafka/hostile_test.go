package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestDeliverBatch_NoRecordReachesATopicOfKafkasOwn(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	for topic, types := range map[string][]string{
		"{{.Type}}":                    {"__consumer_offsets", "__transaction_state", "_schemas", "../x", "a/b", "a\x00"},
		"{{lower .Type}}":              {"__CONSUMER_OFFSETS"},
		"_{{.Type}}":                   {"_consumer_offsets"},
		"{{if .Key}}_{{end}}{{.Type}}": {"schemas"},
	} {
		s := sinkOf(t, cluster, func(c *kafka.Config) { c.Topic = topic })
		for _, typ := range types {
			ds := sinktest.Deliveries(1, 1)
			ds[0].Type = typ
			n, err := sinktest.Deliver(t, s, ds)
			require.Zero(t, n)
			require.True(t, processor.IsPermanent(err), "%q %q: %v", topic, typ, err)
		}
	}
	_, err := kafka.New(kafka.Config{Brokers: []string{"x:1"}, Topic: "__consumer_offsets"})
	require.ErrorContains(t, err, "topics that begin with __ are Kafka's own")
	_, err = kafka.New(kafka.Config{Brokers: []string{"x:1"}, Topic: "_outbox.{{.Type}}"})
	require.NoError(t, err)
}
