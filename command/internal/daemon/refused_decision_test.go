package daemon_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestDecision_OfAHaltOverUsProposesNoSkip: pause and resume proposed it, and skip took it without a word. The record, which was
// never refused, was lost for nothing.
func TestDecision_OfAHaltOverUsProposesNoSkip(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	lease, err := s.Acquire(t.Context(), "a")
	require.NoError(t, err)
	now, at := time.Now(), lease.Position()
	refused := cursor.Failure{Position: at[:len(at)-1] + "9", RecordID: "9", Attempts: 1, First: now, Last: now, Error: "401 Unauthorized", Class: cursor.ClassRefused}
	require.NoError(t, lease.Halt(t.Context(), refused))
	lease.Release()
	before, err := s.Look(t.Context(), "a")
	require.NoError(t, err)
	o, err := daemon.NewOperator(t.Context(), config, "a")
	require.NoError(t, err)
	defer o.Close()

	decision := cursor.Decision{Actor: "alice", Reason: "x"}
	const fix = "fix what it says (credentials, address, settings; where records are missing, `seek` back to them), then `ordered-dispatcher retry a`"
	_, pauseErr := o.Pause(t.Context(), decision)
	_, resumeErr := o.Resume(t.Context(), decision)
	for _, err := range []error{pauseErr, resumeErr} {
		require.ErrorIs(t, err, cursor.ErrHalted)
		require.ErrorContains(t, err, "the receiver refuses us, not record 9")
		require.ErrorContains(t, err, fix)
		require.NotContains(t, err.Error(), "skip")
	}
	for _, dry := range []bool{true, false} {
		decision.DryRun = dry
		_, err = o.Skip(t.Context(), decision)
		require.ErrorIs(t, err, cursor.ErrNotFailing)
		require.ErrorContains(t, err, "the receiver refuses us, not record 9: 401 Unauthorized")
		require.ErrorContains(t, err, "nothing was changed: "+fix)
		require.ErrorContains(t, err, "`ordered-dispatcher seek a --to-position")
	}
	after, err := s.Look(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, before, after)

	decision.DryRun = false
	outcome, err := o.Retry(t.Context(), decision)
	require.NoError(t, err)
	require.Equal(t, before.Position, outcome.After.Position)
	require.Equal(t, cursor.Running, outcome.After.State)
}
