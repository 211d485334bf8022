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
	require.EqualError(t, newGuard(c).Error(fmt.Errorf("publish: %w; bind a queue", &returned{312, "NO_ROUTE"})), "publish: the broker returned it: 312 […]; bind a queue")
	for _, reason := range []string{"the broker", "low", "disk", "e"} {
		require.EqualError(t, newGuard(c).Error(fmt.Errorf("publish to the exchange: %w", &blocked{reason})), "publish to the exchange: the broker takes no messages ([…]); free memory or disk there")
	}
}

// The parser takes the rest of a password with a slash for the virtual host, which messages name.
func TestNew_RefusesAPasswordThatIsNotEncoded(t *testing.T) {
	t.Parallel()
	c := Config{URL: "amqp://u:12/s3cret@127.0.0.1:5672/", Exchange: "e", RoutingKey: "k"}
	require.EqualError(t, c.withDefaults().validate(), "url cannot be parsed: write it as amqp://user:password@host:5672/vhost, percent-encode what is special in a password")
	c.URL = "amqp://u:12%2Fs3cret@127.0.0.1:5672/a%40b"
	require.NoError(t, c.withDefaults().validate())
}
