package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A process that cannot be forked (EAGAIN) is among what passes for a time-out.
func TestKnown_IsNoTimeoutWhateverCausedIt(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded, &fs.PathError{Op: "fork/exec", Path: "p", Err: syscall.EAGAIN}} {
		err := fmt.Errorf("start it: %w", cause)
		require.True(t, outcome.IsUnknown(err))
		require.False(t, outcome.IsUnknown(outcome.Known(err)))
		require.EqualError(t, outcome.Known(err), err.Error())
	}
	canceled := fmt.Errorf("start it: %w", context.Canceled)
	require.Equal(t, canceled, outcome.Known(canceled))
}

func TestUnknown_IsATimeoutAndKeepsItsCause(t *testing.T) {
	t.Parallel()
	cause := processor.Permanent(errors.New("no"))
	err := fmt.Errorf("send: %w", outcome.Unknown(cause))
	require.True(t, outcome.IsUnknown(err))
	require.True(t, processor.IsPermanent(err))
	require.EqualError(t, outcome.Unknown(cause), "no")
}

func TestRefusal_IsToldAndKeepsItsCause(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("send: %w", outcome.AboutRecord(processor.Permanent(errors.New("no"))))
	require.True(t, outcome.IsAboutRecord(err))
	require.True(t, processor.IsPermanent(err))
	require.False(t, outcome.IsAboutRecord(errors.New("no")))
	require.False(t, outcome.IsAboutRecord(nil))
}

func TestNoTime_IsToldAndKeepsItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("the call ends")
	err := fmt.Errorf("send: %w", outcome.NoTime(cause))
	require.True(t, outcome.IsNoTime(err))
	require.ErrorIs(t, err, cause)
	require.False(t, outcome.IsNoTime(cause))
	require.False(t, outcome.IsNoTime(nil))
}

func TestFinal_IsToldAndKeepsItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("set back")
	err := processor.Refused(fmt.Errorf("send: %w", outcome.ReportedOnce(cause)))
	require.True(t, outcome.IsReportedOnce(err))
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "send: set back")
	require.False(t, outcome.IsReportedOnce(processor.Refused(cause)))
	require.False(t, outcome.IsReportedOnce(nil))
}

func TestOutage_IsUnknownAndNoWordOnTheRecord(t *testing.T) {
	t.Parallel()
	cause := errors.New("too few replicas")
	err := fmt.Errorf("send: %w", processor.Unreached(outcome.Outage(cause)))
	require.True(t, outcome.IsOutage(err))
	require.True(t, outcome.IsUnknown(err))
	require.True(t, processor.IsUnreached(err))
	require.ErrorIs(t, err, cause)
	require.False(t, outcome.IsOutage(outcome.Unknown(cause)))
	require.False(t, outcome.IsOutage(nil))
}
