package sql_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// repeating speaks the protocol of PostgreSQL, and repeats a password: at the login,
// or in the answer to the first statement.
func repeating(t testing.TB, atLogin bool) (address string) {
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
			go repeat(conn, atLogin)
		}
	}()
	return listener.Addr().String()
}

func repeat(conn net.Conn, atLogin bool) {
	defer conn.Close()
	server := pgproto3.NewBackend(conn, conn)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}
	server.Send(&pgproto3.AuthenticationCleartextPassword{})
	_ = server.SetAuthType(pgproto3.AuthTypeCleartextPassword)
	if server.Flush() != nil {
		return
	}
	var password string
	for {
		message, err := server.Receive()
		if err != nil {
			return
		}
		given, isLogin := message.(*pgproto3.PasswordMessage)
		if isLogin {
			password = secrettest.Forms(given.Password)
		}
		if isLogin && !atLogin {
			server.Send(&pgproto3.AuthenticationOk{})
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		} else {
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "no user has " + password + "\n", Detail: password, Hint: password})
		}
		if server.Flush() != nil || !isLogin || atLogin {
			return
		}
	}
}

func TestGuard_AServerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	for where, atLogin := range map[string]bool{"at the login": true, "in an answer": false} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			address := repeating(t, atLogin)
			for _, hide := range []bool{false, true} {
				remote, err := sql.NewRemote(sql.RemoteConfig{
					URL:       "postgres://u:" + url.QueryEscape(secrettest.Canary) + "@" + address + "/d?sslmode=disable",
					Statement: "SELECT 1", HideAnswers: hide,
				})
				require.NoError(t, err)
				t.Cleanup(func() { _ = remote.Close() })
				_, err = remote.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
				for _, err := range []error{err, remote.Check(t.Context())} {
					require.ErrorContains(t, err, "28P01")
					secrettest.RequireNone(t, err.Error(), secrettest.Canary)
					if hide {
						require.NotContains(t, err.Error(), "no user has")
					} else {
						require.ErrorContains(t, err, "no user has [secret]")
					}
				}
			}
		})
	}
}
