package answer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrSilent means that an answer did not come, and that the server then did not answer a new connection either. It
// wraps ErrNone. The caller gives up all connections of the pool, since new ones resolve and choose a host anew.
var ErrSilent = fmt.Errorf("%w: the server is silent", ErrNone)

const (
	// silentAfter is how long to wait for an answer before knocking at the server. A slow statement and a COMMIT that
	// waits for a standby may take much longer. A server that hangs may not.
	silentAfter = 5 * time.Second
	// knockTimeout bounds the knock. The server's postmaster answers it, without a login.
	knockTimeout = 3 * time.Second
)

// Heard calls f, which waits for answers on conn. It ends the context of f when the server is silent.
func Heard(ctx context.Context, conn *pgx.Conn, f func(context.Context) error) error {
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer Listen(heard, conn, cancel).Stop()
	err := f(heard)
	if cause := context.Cause(heard); err != nil && errors.Is(cause, ErrSilent) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// Listen calls silent once if an answer on conn is awaited and the server is silent. When the answer has come, the
// caller ends ctx and stops the timer.
func Listen(ctx context.Context, conn *pgx.Conn, silent func(error)) *time.Timer {
	return time.AfterFunc(silentAfter, func() {
		for ctx.Err() == nil {
			if knock(ctx, conn) {
				silent(fmt.Errorf("%w: no answer for %v, and none to a new connection within %v", ErrSilent, silentAfter, knockTimeout))
				return
			}
			wait(ctx, silentAfter)
		}
	})
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sslRequest asks a server whether it supports TLS. Every server and pooler answers it with one byte, before it
// checks limits and logins: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL
var sslRequest = []byte{0, 0, 0, 8, 4, 210, 22, 47}

// knock reports whether the server of conn takes a new connection and then stays silent. A refused connection is an
// answer of the host. It does not ask a server on this machine's own socket.
func knock(ctx context.Context, conn *pgx.Conn) (silent bool) {
	address := conn.PgConn().Conn().RemoteAddr()
	if address.Network() != "tcp" {
		return false
	}
	asking, cancel := context.WithTimeout(ctx, knockTimeout)
	defer cancel()
	asked, err := conn.Config().DialFunc(asking, address.Network(), address.String())
	if err == nil {
		err = ask(asking, asked)
	}
	return timedOut(err) && ctx.Err() == nil
}

func ask(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := errors.Join(conn.SetReadDeadline(deadline), conn.SetWriteDeadline(deadline)); err != nil {
		return err
	}
	if _, err := conn.Write(sslRequest); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
