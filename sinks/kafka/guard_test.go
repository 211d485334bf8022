package kafka

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestGuard_HidesThePasswordAndOnDemandAllThatTheBrokerSays(t *testing.T) {
	t.Parallel()
	c := Config{SASL: SASL{Mechanism: "PLAIN", User: "u", Password: "pass-word-9"}}
	err := fmt.Errorf("send: %w; correct it", fmt.Errorf("no AHUAcGFzcy13b3JkLTk= here: %w", kerr.SaslAuthenticationFailed)) // PLAIN's own form
	require.ErrorContains(t, newGuard(c).Error(err), "no [secret] here: SASL_AUTHENTICATION_FAILED")
	c.HideAnswers = true
	require.ErrorContains(t, newGuard(c).Error(err), "send: […]")
	require.ErrorContains(t, newGuard(c).Error(err), "SASL_AUTHENTICATION_FAILED")
	require.NotContains(t, newGuard(c).Error(err).Error(), "here")
	require.ErrorIs(t, newGuard(c).Error(err), kerr.SaslAuthenticationFailed)
}
