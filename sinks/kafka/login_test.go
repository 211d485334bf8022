package kafka_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// demand makes a broker ask for so many iterations of SCRAM.
func demand(cluster *kfake.Cluster, iterations int) {
	cluster.ControlKey(kmsg.SASLHandshake.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return request.ResponseKind(), nil, true
	})
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		_, nonce, _ := bytes.Cut(request.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes, []byte("r="))
		response.SASLAuthBytes = fmt.Appendf(nil, "r=%sXYZ,s=QSXCR+Q6sek8bf92,i=%d", nonce, iterations)
		return response, nil, true
	})
}

// The client hashes without a look at the time.
func TestDeliver_ABrokerThatAsksForTooManyIterationsIsRefused(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		for _, iterations := range []int{1_000_001, 999_999_999_999} {
			cluster := fake(t)
			demand(cluster, iterations)
			s := sinkOf(t, cluster, func(c *kafka.Config) {
				c.SASL, c.Timeout = kafka.SASL{Mechanism: mechanism, User: "u", Password: "hunter2"}, 10*time.Second
			})
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
			require.Zero(t, n)
			require.ErrorContains(t, err, fmt.Sprintf("the broker asks for %d iterations of SCRAM", iterations))
			require.True(t, processor.IsUnreached(err), err)
		}
	}
}
