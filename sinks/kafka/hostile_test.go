package kafka_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

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

// An answer may name topics that were not asked for. The sink would ask about all of them on each new link.
func TestDeliverBatch_TopicsThatWereNotAskedForAreNotKept(t *testing.T) {
	t.Parallel()
	cluster := clusterOf(t, kfake.SeedTopics(1, "t"), kfake.MaxVersions(kversion.V3_9_0()))
	asked := hear(cluster, kmsg.Metadata)
	cluster.ControlKey(kmsg.Metadata.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		request := kreq.(*kmsg.MetadataRequest)
		if len(request.Topics) == 0 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.MetadataResponse) // to the first question about topics
		for i := range 100 {
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic = kmsg.StringPtr(fmt.Sprint("other", i))
			topic.TopicID = [16]byte{byte(i), 1}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	s := sinkOf(t, cluster, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	require.NoError(t, s.Close())
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1))
	most := 0
	for _, request := range asked.all() {
		most = max(most, len(request.(*kmsg.MetadataRequest).Topics))
	}
	require.Equal(t, 1, most)
}
