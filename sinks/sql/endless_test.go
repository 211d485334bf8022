package sql_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// A message of a target is refused by its length, before a byte of it is kept.
func TestRemote_ATargetThatSaysTooMuchIsNotHeardOut(t *testing.T) {
	t.Parallel()
	for where, atLogin := range map[string]bool{"at the login": true, "in an answer": false} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			remote, err := sql.NewRemote(sql.RemoteConfig{
				URL: "postgres://u@" + wordy(t, atLogin) + "/d?sslmode=disable", Statement: "SELECT 1", Timeout: time.Minute,
			})
			require.NoError(t, err)
			t.Cleanup(func() { _ = remote.Close() })
			_, err = remote.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "22000", "the message was read to its end")
			require.Less(t, len(err.Error()), 1000)
		})
	}
}

// wordy is a server whose error has 5 MiB.
func wordy(t testing.TB, atLogin bool) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				server := pgproto3.NewBackend(conn, conn)
				if _, err := server.ReceiveStartupMessage(); err != nil {
					return
				}
				if !atLogin {
					server.Send(&pgproto3.AuthenticationOk{})
					server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
					if server.Flush() != nil {
						return
					}
					if _, err := server.Receive(); err != nil {
						return
					}
				}
				server.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "22000", Message: strings.Repeat("m", 5<<20)})
				_ = server.Flush()
			}()
		}
	}()
	return listener.Addr().String()
}
