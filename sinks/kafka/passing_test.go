package kafka_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Every record would meet the same. The broker's word is there before the time runs out. It was asked more than once, and only
// of a transaction it is sure that nothing came of that.
func TestDeliverBatch_AWordThatMayPassIsNoAttempt(t *testing.T) {
	t.Parallel()
	fixes := map[*kerr.Error]string{
		kerr.NotEnoughReplicas:     "bring replicas back",
		kerr.NotLeaderForPartition: "bring back the broker that leads the partition",
		kerr.LeaderNotAvailable:    "bring back the broker that leads the partition",
	}
	for name, change := range map[string]func(*kafka.Config){"plain": nil, "with transactions": transactional} {
		for code, fix := range fixes {
			t.Run(name+" "+code.Message, func(t *testing.T) {
				t.Parallel()
				cluster := fake(t)
				s := sinkOf(t, cluster, change)
				sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
				refused := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: code, Count: -1})
				n, err := sinktest.Deliver(t, s, sinktest.Deliveries(4, 3))
				require.Zero(t, n)
				require.ErrorIs(t, err, code)
				require.ErrorContains(t, err, fix)
				require.True(t, processor.IsUnreached(err), err)
				require.Equal(t, change == nil, outcome.IsOutage(err), err)
				require.Equal(t, change == nil, outcome.IsUnknown(err), err)
				refused.Remove()
				sinktest.Delivered(t, s, sinktest.Deliveries(4, 3))
			})
		}
	}
}

// A leader that moved is found at the second try, however short the time.
func TestDeliverBatch_OneWordThatMayPassIsWaitedForWithAShortTimeout(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t)
			s := sinkOf(t, cluster, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			s = sinkOf(t, cluster, func(c *kafka.Config) { c.Timeout = 1400 * time.Millisecond })
			answerOnce(cluster, code)
			sinktest.Delivered(t, s, sinktest.Deliveries(3, 1))
		})
	}
}

// A new client that is told of no leader asks the broker that it has reached. That says no, as a leader would that stepped down.
func TestDeliverBatch_ADeadLeaderIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"it is still named": true, "none is named": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			s := sinkOf(t, p.cluster, func(c *kafka.Config) { c.Brokers, c.Timeout = []string{p.other}, 4*time.Second })
			s.Dial(p.dial)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 2))
			p.kill()
			if !named {
				p.cluster.ControlKey(kmsg.Metadata.Int16(), p.leaderless)
			}
			for range 3 {
				n, err := sinktest.Deliver(t, s, sinktest.Deliveries(3, 2))
				require.Zero(t, n)
				require.True(t, processor.IsUnreached(err), err)
				require.Equal(t, outcome.IsOutage(err), outcome.IsUnknown(err), err)
				require.False(t, named && outcome.IsUnknown(err), err)
			}
		})
	}
}

// pair is a cluster of two, of which the leader of the topic can be killed.
type pair struct {
	cluster       *kfake.Cluster
	leader, other string

	mu    sync.Mutex
	dead  bool
	conns []net.Conn // to the leader
}

func newPair(t testing.TB) *pair {
	t.Helper()
	cluster := clusterOf(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "t"))
	addresses, leads := cluster.ListenAddrs(), cluster.LeaderFor("t", 0)
	return &pair{cluster: cluster, leader: addresses[leads], other: addresses[1-leads]}
}

func (p *pair) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if address == p.leader && p.dead {
		address = "127.0.0.1:1"
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil && address == p.leader {
		p.conns = append(p.conns, conn)
	}
	return conn, err
}

func (p *pair) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

// leaderless answers as a controller does that has noticed.
func (p *pair) leaderless(request kmsg.Request) (kmsg.Response, error, bool) {
	p.cluster.KeepControl()
	response := request.ResponseKind().(*kmsg.MetadataResponse)
	other := kmsg.NewMetadataResponseBroker()
	host, port, _ := net.SplitHostPort(p.other)
	number, _ := strconv.Atoi(port)
	other.NodeID, other.Host, other.Port = p.cluster.CurrentNode(), host, int32(number)
	response.Brokers = append(response.Brokers, other)
	for _, asked := range request.(*kmsg.MetadataRequest).Topics {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, p.cluster.TopicInfo("t").TopicID
		partition := kmsg.NewMetadataResponseTopicPartition()
		partition.ErrorCode, partition.Leader = kerr.LeaderNotAvailable.Code, -1
		topic.Partitions = append(topic.Partitions, partition)
		response.Topics = append(response.Topics, topic)
	}
	return response, nil, true
}
