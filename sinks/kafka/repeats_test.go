package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestGuard_ABrokerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.EnableSASL())
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request := kreq.(*kmsg.SASLAuthenticateRequest)
		response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		words := secrettest.Words + secrettest.Forms(secrettest.Canary) + string(request.SASLAuthBytes) + secrettest.Forms(string(request.SASLAuthBytes)) + "\n"
		response.ErrorMessage = &words
		return response, nil, true
	})
	for _, hide := range []bool{false, true} {
		s := sinkOf(t, cluster, func(c *kafka.Config) {
			c.HideAnswers, c.SASL = hide, kafka.SASL{Mechanism: "PLAIN", User: "u", Password: secrettest.Canary}
		})
		_, err := deliver(t, s, sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "SASL_AUTHENTICATION_FAILED")
		secrettest.RequireMasked(t, err, hide)
	}
}
