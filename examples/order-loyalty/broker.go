package main

import (
	"errors"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	topic      = "orders"
	partitions = 3
)

// broker is a Kafka of one broker, inside of this program. It may be away.
type broker struct {
	*kfake.Cluster
	away atomic.Bool
}

func startKafka() (*broker, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	if err != nil {
		return nil, err
	}
	b := &broker{Cluster: cluster}
	cluster.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if b.away.Load() {
			return nil, errors.New("the broker is away"), true // hangs up
		}
		return nil, nil, false
	})
	return b, nil
}

func (b *broker) addresses() []string { return b.ListenAddrs() }
