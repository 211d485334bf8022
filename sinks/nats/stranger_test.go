package nats_test

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// refer answers a login with an error, after it has named other servers.
func refer(conn net.Conn, others ...string) {
	names := ""
	for _, other := range others {
		names += fmt.Sprintf(",%q", other)
	}
	fmt.Fprintf(conn, `INFO {"server_id":"s","version":"2.12.0","proto":1,"max_payload":1000000,"headers":true,"jetstream":true,"auth_required":true,`+
		`"connect_urls":[%s]}`+"\r\n", names[min(1, len(names)):])
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if line == "PING\r\n" {
			fmt.Fprint(conn, "-ERR 'not here'\r\n")
			return
		}
	}
}

func TestOpen_OnlyConfiguredServersGetTheLogin(t *testing.T) {
	t.Parallel()
	var configured, referred atomic.Int32
	other := tcptest.Serve(t, func(conn net.Conn) { referred.Add(1); refer(conn) })
	second := tcptest.Serve(t, func(conn net.Conn) { configured.Add(1); refer(conn, other) })
	first := tcptest.Serve(t, func(conn net.Conn) { configured.Add(1); refer(conn, other) })
	sink := sinktest.Made(t, nats.New, nats.Config{
		URL: "nats://" + first + ",nats://" + second, User: "u", Password: "p", Stream: stream, Subject: "bookings.x", Timeout: time.Minute,
	})
	_, err := sinktest.Deliver(t, sink, sinktest.Deliveries(1, 1))
	require.Error(t, err)
	require.EqualValues(t, 2, configured.Load(), "all configured servers are tried")
	require.Zero(t, referred.Load(), "a server that another one named got the login")
}
