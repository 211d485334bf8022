package daemon_test

import (
	"bytes"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// A call that looks at no context keeps no program from its end.
func TestSignals_WhatDoesNotEndAfterTheGraceIsEndedByForce(t *testing.T) {
	t.Parallel()
	signals, code := make(chan os.Signal, 1), make(chan int, 1)
	var log bytes.Buffer
	signals <- syscall.SIGTERM
	over := daemon.AwaitSignal(t, daemon.RunConfig{
		Config:  daemon.Config{Processes: []daemon.Process{{Name: "done"}, {Name: "hangs"}}},
		Signals: signals, Grace: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Exit: func(c int) { code <- c },
	}, func() {}, "done")
	select {
	case got := <-code:
		require.Equal(t, daemon.ExitFailed, got)
	case <-time.After(time.Minute):
		require.Fail(t, "it did not end")
	}
	over()
	require.Contains(t, log.String(), "stopping by force")
	require.Contains(t, log.String(), "not_ended=[hangs]")
}

// What reads the word that the program stops may rely on it.
func TestSignals_NothingIsBegunAfterTheWordThatItStops(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var log bytes.Buffer
	before := "nothing"
	over := daemon.AwaitSignal(t, daemon.RunConfig{
		Signals: signals, Grace: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)), Exit: func(int) {},
	}, func() { before = log.String() })
	over()
	require.Empty(t, before, "no process begins another record before it is said")
	require.Contains(t, log.String(), "stopping")
}
