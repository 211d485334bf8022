package daemon

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTimeout = 10 * time.Second
	// hostTimeout is connectTimeout where there is another host to try. Every wait for
	// a connection is longer than that, so one that hangs does not use it up.
	hostTimeout = 3 * time.Second
	// aliveTimeout bounds the question whether an idle connection is alive.
	aliveTimeout = 3 * time.Second
	// farewell is for how long the driver waits for a server to take leave of it. The
	// connection has its place in the pool so long.
	farewell = 2 * time.Second
)

// keepAlive notices within some ten seconds that the server's host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// timed has each step of connecting, and of taking leave, end in time. The driver
// bounds neither the look-up of a host nor its request to cancel, and waits a quarter
// of a minute for a silent server to close a connection.
func timed(c *pgconn.Config) {
	timeout, lookUp := c.ConnectTimeout, c.LookupFunc
	dialer := &net.Dialer{Timeout: timeout, KeepAliveConfig: keepAlive, Control: controlSocket}
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return lookUp(ctx, host)
	}
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			return brief{tcp}, tcp.SetReadDeadline(time.Now().Add(timeout)) // until it is greeted
		}
		return conn, err
	}
	c.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error { return conn.Conn().SetReadDeadline(time.Time{}) }
}

// brief is a connection on which the driver's farewell is short: it sets a deadline in
// the future for nothing else.
type brief struct{ *net.TCPConn }

// SetDeadline sets none that is further away than farewell.
func (c brief) SetDeadline(t time.Time) error {
	if latest := time.Now().Add(farewell); t.After(latest) {
		t = latest
	}
	return c.TCPConn.SetDeadline(t)
}

// askIdle has the pool ask whether a connection that was idle for a second is alive. If
// its server is silent, all that lead there are given up, and not one after the other.
// open is the pool, once it is made.
func askIdle(config *pgxpool.Config, open func() *pgxpool.Pool) {
	config.ShouldPing = func(ctx context.Context, idle pgxpool.ShouldPingParams) bool {
		if idle.IdleDuration <= time.Second {
			return false
		}
		asking, cancel := context.WithTimeout(ctx, aliveTimeout)
		defer cancel()
		err := idle.Conn.Ping(asking)
		if err != nil && asking.Err() != nil && ctx.Err() == nil {
			open().Reset()
		}
		return err != nil // the pool asks again, hears at once that it is closed, and takes another
	}
}
