package link_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

func TestHold_StallsOneConnectionInOneDirection(t *testing.T) {
	t.Parallel()
	target, accepted := server(t)
	l := tcptest.Link(t, target)
	near, far := dial(t, l, accepted)
	otherNear, otherFar := dial(t, l, accepted)
	found := l.Hold(link.Server, func(data []byte) bool { return bytes.Contains(data, []byte("this one")) })

	_, err := near.Write([]byte("this one"))
	require.NoError(t, err)
	got := make([]byte, 8)
	_, err = far.Read(got)
	require.NoError(t, err, "its other direction goes on")
	<-found
	_, err = otherFar.Write([]byte("another"))
	require.NoError(t, err)
	_, err = otherNear.Read(got)
	require.NoError(t, err, "another connection goes on")

	_, err = far.Write([]byte("answer"))
	require.NoError(t, err)
	require.NoError(t, near.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = near.Read(got)
	require.Error(t, err, "the answer is held")
	require.NoError(t, near.SetReadDeadline(time.Now().Add(patience)))
	l.Resume()
	require.NoError(t, near.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = near.Read(got)
	require.Error(t, err, "the link is not stalled, this connection is held")
	require.NoError(t, near.SetReadDeadline(time.Now().Add(patience)))
	l.Release()
	n, err := near.Read(got)
	require.NoError(t, err)
	require.Equal(t, "answer", string(got[:n]))
}
