package link_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
)

// patience bounds every wait: a test that needs it fails.
const patience = time.Minute

// server accepts connections and hands them over.
func server(t *testing.T) (string, <-chan net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn, 8)
	return tcptest.Serve(t, func(conn net.Conn) {
		accepted <- conn
		<-t.Context().Done()
	}), accepted
}

// linked is a link and the two ends of a connection over it.
func linked(t *testing.T) (l *link.Link, near, far net.Conn) {
	t.Helper()
	target, accepted := server(t)
	l = tcptest.Link(t, target)
	near, far = dial(t, l, accepted)
	return l, near, far
}

func dial(t *testing.T, l *link.Link, accepted <-chan net.Conn) (near, far net.Conn) {
	t.Helper()
	near, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	far = <-accepted
	t.Cleanup(func() { _ = far.Close() })
	for _, conn := range []net.Conn{near, far} {
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	}
	return near, far
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(to, text)
	require.NoError(t, err)
}

// rest is what comes until the connection ends.
func rest(t *testing.T, from net.Conn) string {
	t.Helper()
	text, err := io.ReadAll(from)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	return string(text)
}

func TestLink_PassesOnWhatComesAndItsEnd(t *testing.T) {
	t.Parallel()
	_, near, far := linked(t)
	send(t, near, "ask")
	buffer := make([]byte, 3)
	_, err := io.ReadFull(far, buffer)
	require.NoError(t, err)
	require.Equal(t, "ask", string(buffer))
	send(t, far, "answer")
	require.NoError(t, far.Close())
	require.Equal(t, "answer", rest(t, near))
}

func TestStall_HoldsWhatItsSenderHasGivenUp(t *testing.T) {
	t.Parallel()
	l, near, far := linked(t)
	l.Stall()
	send(t, near, "late")
	require.NoError(t, near.Close())
	require.NoError(t, far.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := far.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, far.SetReadDeadline(time.Now().Add(patience)))
	l.Resume()
	require.Equal(t, "late", rest(t, far))
}

func TestCut_EndsWhatIsThereAndLetsNewOnesIn(t *testing.T) {
	t.Parallel()
	target, accepted := server(t)
	l := tcptest.Link(t, target)
	near, far := dial(t, l, accepted)
	send(t, near, "x") // both pumps run
	_, err := io.ReadFull(far, make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, 1, l.Cut())
	require.Empty(t, rest(t, near))
	require.Empty(t, rest(t, far))
	require.Zero(t, l.Cut())
	near, far = dial(t, l, accepted)
	send(t, far, "again")
	require.NoError(t, far.Close())
	require.Equal(t, "again", rest(t, near))
}

func TestTear_PassesHalfOfTheNextPiece(t *testing.T) {
	t.Parallel()
	for name, side := range map[string]link.Side{"of the client": link.Client, "of the server": link.Server} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, from, to := linked(t)
			if side == link.Server {
				from, to = to, from
			}
			torn := l.Tear(side)
			send(t, from, "half and half")
			require.Equal(t, "half a", rest(t, to))
			<-torn
			require.Empty(t, rest(t, from))
		})
	}
}

func TestResume_CallsOffATear(t *testing.T) {
	t.Parallel()
	l, near, far := linked(t)
	l.Tear(link.Client)
	l.Resume()
	send(t, near, "whole")
	require.NoError(t, near.Close())
	require.Equal(t, "whole", rest(t, far))
}

func TestRetarget_LeadsNewConnectionsElsewhere(t *testing.T) {
	t.Parallel()
	l, near, far := linked(t)
	other, accepted := server(t)
	l.Retarget(other)
	_, elsewhere := dial(t, l, accepted)
	send(t, near, "here")
	require.NoError(t, near.Close())
	require.Equal(t, "here", rest(t, far))
	l.Cut()
	require.Empty(t, rest(t, elsewhere))
}

func TestAway_EndsAndRefusesConnectionsUntilItIsBack(t *testing.T) {
	t.Parallel()
	target, accepted := server(t)
	l := tcptest.Link(t, target)
	near, _ := dial(t, l, accepted)
	back := l.Away()
	require.Empty(t, rest(t, near))
	refused, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	require.NoError(t, refused.SetDeadline(time.Now().Add(patience)))
	require.Empty(t, rest(t, refused))
	require.NoError(t, refused.Close())
	back()
	near, far := dial(t, l, accepted)
	send(t, near, "here")
	require.NoError(t, near.Close())
	require.Equal(t, "here", rest(t, far))
}

// The target may have a connection before the link has noted it.
func TestCut_EndsAConnectionThatIsBeingMade(t *testing.T) {
	t.Parallel()
	target, accepted := server(t)
	l := tcptest.Link(t, target)
	for range 2000 {
		near, far := dial(t, l, accepted)
		l.Cut()
		require.Empty(t, rest(t, far))
		require.NoError(t, errors.Join(near.Close(), far.Close()))
	}
}
