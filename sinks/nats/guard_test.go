package nats

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestGuard_HidesSecretsAndOnDemandAllThatTheServerSays(t *testing.T) {
	t.Parallel()
	c := Config{URL: "nats://token-in-url@x,nats://u:pass-word-9@y", Token: "a-token-7"}
	err := fmt.Errorf("claim: %w", &jetstream.APIError{Code: 400, ErrorCode: 10059, Description: `no a\u002dtoken-7, token%2Din-url nor pass-word-9`})
	require.ErrorContains(t, newGuard(c).Error(err), "no [secret], [secret] nor [secret]")
	c.HideAnswers = true
	require.NotContains(t, newGuard(c).Error(err).Error(), "no ")
	require.ErrorIs(t, newGuard(c).Error(err), jetstream.ErrStreamNotFound)
	require.EqualError(t, newGuard(c).Error(fmt.Errorf("lost: %w", &said{errors.New("words")})), "lost: […]")
}
