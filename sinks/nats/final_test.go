package nats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
)

// A sink that is made anew with other credentials would not know of the loss.
func TestErrSetBack_IsChangedByNoCredentials(t *testing.T) {
	t.Parallel()
	require.True(t, outcome.IsReportedOnce(nats.ErrSetBack))
}
