package nats_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

var jwtInConnect = regexp.MustCompile(`"jwt":"([^"]*)"`)

// echoing is the address of a server that answers each login with the JWT in it, and more.
func echoing(t testing.TB, more func() string) string {
	t.Helper()
	return tcptest.Serve(t, func(c net.Conn) {
		_, _ = io.WriteString(c, `INFO {"server_id":"X","version":"2.11.0","proto":1,"headers":true,"max_payload":1048576,"auth_required":true,"nonce":"abcdefghijkl"}`+"\r\n")
		connect, _ := bufio.NewReader(c).ReadString('\n')
		shown := jwtInConnect.FindStringSubmatch(connect)
		if shown == nil {
			shown = []string{"", "none"}
		}
		_, _ = fmt.Fprintf(c, "-ERR 'no account for %s %s'\r\n", shown[1], more())
	})
}

// A bearer JWT is a login by itself.
func TestGuard_ALoginThatTheServerRepeatsIsNotQuoted(t *testing.T) {
	t.Parallel()
	file := newAuthority(t).credentials(t)
	var jwt, seed string
	var repeated atomic.Value
	load := func() {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		jwt, err = nkeys.ParseDecoratedJWT(text)
		require.NoError(t, err)
		key, err := nkeys.ParseDecoratedNKey(text)
		require.NoError(t, err)
		bytes, err := key.Seed()
		require.NoError(t, err)
		seed = string(bytes)
		repeated.Store(secrettest.Forms(seed))
	}
	load()
	address := echoing(t, func() string { return repeated.Load().(string) })
	s, err := nats.New(nats.Config{URL: "nats://" + address, Stream: stream, Subject: "bookings.{{.Type}}", Credentials: file})
	require.NoError(t, err)
	requireHidden := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "no account for [secret]")
		require.NotContains(t, err.Error(), jwt)
		secrettest.RequireNone(t, err.Error(), seed)
	}
	for range 2 {
		_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		requireHidden(err)
		_, err = s.Check(t.Context(), "p")
		requireHidden(err)
		require.NoError(t, os.Rename(newAuthority(t).credentials(t), file)) // renewed
		load()
	}
	seedOnly := writeFile(t, "user.nk", []byte(seed))
	s, err = nats.New(nats.Config{URL: "nats://" + address, Stream: stream, Subject: "bookings.{{.Type}}", NKey: seedOnly})
	require.NoError(t, err)
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "no account for ")
	secrettest.RequireNone(t, err.Error(), seed)
	require.True(t, strings.Contains(err.Error(), "[secret]"))
}
