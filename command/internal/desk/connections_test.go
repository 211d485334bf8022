package desk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// Doctor says how many connections the server needs for a console, and the daemon does not know the desk.
func TestConsoleConns_AreThoseOfTheDesk(t *testing.T) {
	t.Parallel()
	const doctorConns = 1 // there is one examination at a time, and its checks run one after another
	require.Equal(t, daemon.ConsoleConns, lookConns+questionConns+maxDecisions*decisionConns+doctorConns)
}
