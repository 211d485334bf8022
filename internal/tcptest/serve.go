package tcptest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Serve hands each connection to the address, in a goroutine of its own, to handle. It
// closes a connection when handle returns, or when t ends, which waits for all of them.
func Serve(t testing.TB, handle func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, hangUp := context.WithCancel(context.Background())
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		hangUp()
		open.Wait()
	})
	return listener.Addr().String()
}

// Closed is an address at which nobody listens: it is bound, so that nobody else comes to.
func Closed(t testing.TB) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	require.NoError(t, listener.Close())
	return near.LocalAddr().String()
}
