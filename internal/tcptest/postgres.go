package tcptest

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Moment is the moment at which a session is ended.
type Moment int

// The moments of a session.
const (
	Greeting  Moment = iota // before the question for the password
	Login                   // in the answer to the password
	Statement               // in the answer to the first statement
)

// Postgres speaks the protocol of PostgreSQL. It ends each session at a moment with an error that refusal makes from
// the password of the login.
func Postgres(t testing.TB, at Moment, refusal func(password string) *pgproto3.ErrorResponse) (address string) {
	t.Helper()
	return Serve(t, func(conn net.Conn) {
		server := pgproto3.NewBackend(conn, conn)
		password, err := session(server, at)
		if err == nil {
			server.Send(refusal(password))
			_ = server.Flush()
		}
	})
}

// session goes on until the moment comes.
func session(server *pgproto3.Backend, at Moment) (password string, err error) {
	if _, err := server.ReceiveStartupMessage(); err != nil || at == Greeting {
		return "", err
	}
	server.Send(&pgproto3.AuthenticationCleartextPassword{})
	if err := errors.Join(server.SetAuthType(pgproto3.AuthTypeCleartextPassword), server.Flush()); err != nil {
		return "", err
	}
	message, err := server.Receive()
	if login, ok := message.(*pgproto3.PasswordMessage); ok {
		password = login.Password
	}
	if err != nil || at == Login {
		return password, err
	}
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := server.Flush(); err != nil {
		return "", err
	}
	_, err = server.Receive()
	return password, err
}

// Long returns an error of that many bytes, with the SQLSTATE 22000.
func Long(bytes int) func(password string) *pgproto3.ErrorResponse {
	return func(string) *pgproto3.ErrorResponse {
		return &pgproto3.ErrorResponse{Severity: "ERROR", Code: "22000", Message: strings.Repeat("m", bytes)}
	}
}
