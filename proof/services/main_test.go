package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

type closing func()

func (c closing) Close(context.Context) error { c(); return nil }

func TestRun_StartsWhatDoesNotRunYetAndClosesThatAlone(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	free, err := throwaway.FreePort()
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	closed := 0
	var out bytes.Buffer
	err = run(ctx, []service{
		{"there", taken.Addr().(*net.TCPAddr).Port, func(context.Context, int) (running, string, error) {
			return nil, "", errors.New("it was started a second time")
		}},
		{"absent", free, func(context.Context, int) (running, string, error) {
			return nil, "", errors.New("not on this machine")
		}},
		{"new", free, func(context.Context, int) (running, string, error) {
			interrupt()
			return closing(func() { closed++ }), "new://here", nil
		}},
	}, &out)
	require.EqualError(t, err, "absent: not on this machine", "the others ran all the same")
	require.Equal(t, 1, closed)
	require.Contains(t, out.String(), "there      something listens on port")
	require.Contains(t, out.String(), "new        new://here\nrunning until interrupted\n")
}
