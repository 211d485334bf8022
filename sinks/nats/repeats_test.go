package nats_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// repeat speaks the protocol of NATS, and repeats the login where it is told to.
func repeat(conn net.Conn, where string) {
	fmt.Fprint(conn, `INFO {"server_id":"s","version":"2.12.0","max_payload":1000000,"headers":true,"jetstream":true,"auth_required":true}`+"\r\n")
	var login, id string
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
		case fields[0] == "CONNECT":
			var c struct{ Pass, Auth_token string }
			_ = json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "CONNECT ")), &c)
			login = secrettest.Words + secrettest.Forms(c.Pass+c.Auth_token)
		case fields[0] == "PING" && where == "at the login":
			fmt.Fprintf(conn, "-ERR '%s'\r\n", login)
			return
		case fields[0] == "PING":
			fmt.Fprint(conn, "PONG\r\n")
		case fields[0] == "SUB":
			id = fields[len(fields)-1]
		case fields[0] == "PUB" && where == "by hanging up":
			fmt.Fprintf(conn, "-ERR '%s'\r\n", login)
			return
		case fields[0] == "PUB":
			answer, _ := json.Marshal(map[string]any{"type": "io.nats.jetstream.api.v1.stream_info_response",
				"error": map[string]any{"code": 503, "err_code": 10008, "description": login}})
			fmt.Fprintf(conn, "MSG %s %s %d\r\n%s\r\n", fields[2], id, len(answer), answer)
		}
	}
}

func TestGuard_AServerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"at the login", "by hanging up", "in an answer"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			address := tcptest.Serve(t, func(conn net.Conn) { repeat(conn, where) })
			for name, login := range map[string]func(*nats.Config){
				"password": func(c *nats.Config) { c.User, c.Password = "u", secrettest.Canary },
				"token":    func(c *nats.Config) { c.Token = secrettest.Canary },
				"url":      func(c *nats.Config) { c.URL = "nats://u:" + url.QueryEscape(secrettest.Canary) + "@" + address },
			} {
				config := nats.Config{URL: "nats://" + address, Stream: stream, Subject: "bookings.{{.Type}}"}
				login(&config)
				t.Run(name, func(t *testing.T) {
					requireNothingRepeated(t, config, where != "by hanging up") // then only sometimes
				})
			}
		})
	}
}

func requireNothingRepeated(t testing.TB, config nats.Config, quoted bool) {
	t.Helper()
	for _, hide := range []bool{false, true} {
		config.HideAnswers = hide
		s, err := nats.New(config)
		require.NoError(t, err)
		defer s.Close()
		_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
		require.Error(t, err)
		_, checked := s.Check(t.Context(), "sms")
		require.Error(t, checked)
		for _, err := range []error{err, checked} {
			secrettest.RequireNone(t, err.Error(), secrettest.Canary)
			if quoted || hide || strings.Contains(err.Error(), secrettest.Words) {
				secrettest.RequireMasked(t, err, hide)
			}
		}
	}
}
