package tcptest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Serve calls handle with each connection to the address, in a goroutine of its own. It closes a connection when
// handle returns, or when t ends. The end of t waits for all of them.
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

// Closed returns an address without a listener. It is bound, so that no other process can take it.
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
