package rabbitmq

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

func TestGuard_HidesThePasswordAndOnDemandAllThatTheBrokerSays(t *testing.T) {
	t.Parallel()
	c := Config{URL: "amqp://u:p%40ss-word-9@rabbit"}
	err := fmt.Errorf("publish: %w; correct it", &amqp.Error{Code: 403, Reason: "no p%40ss-word-9, cEBzcy13b3JkLTk= nor p@ss-word-9", Server: true})
	require.EqualError(t, newGuard(c).Error(err), `publish: Exception (403) Reason: "no [secret], [secret] nor [secret]"; correct it`)
	c.HideAnswers = true
	require.EqualError(t, newGuard(c).Error(err), `publish: Exception (403) Reason: "[…]"; correct it`)
	require.EqualError(t, newGuard(c).Error(fmt.Errorf("returned: %w", said("NO_ROUTE"))), "returned: […]")
}
