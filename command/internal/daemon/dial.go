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
	// hostTimeout replaces connectTimeout if there is another host to try. Every wait for a connection is longer than
	// that, so a host that hangs does not use it up.
	hostTimeout = 3 * time.Second
	// aliveTimeout bounds the question whether an idle connection is alive.
	aliveTimeout = 3 * time.Second
	// farewell is how long the driver waits for a server to close the connection. The connection keeps its place in
	// the pool for that time.
	farewell = 2 * time.Second
)

// keepAlive detects within about ten seconds that the server's host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// timed bounds each step of connecting and of closing. The driver bounds neither the look-up of a host nor its
// request to cancel, and it waits 15 seconds for a silent server to close a connection.
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
			return brief{tcp}, tcp.SetReadDeadline(time.Now().Add(timeout)) // until the server greets
		}
		return conn, err
	}
	c.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error { return conn.Conn().SetReadDeadline(time.Time{}) }
}

// brief is a connection on which the driver's farewell is short. The driver sets a deadline in the future only for
// that.
type brief struct{ *net.TCPConn }

// SetDeadline shortens a deadline that is further away than farewell.
func (c brief) SetDeadline(t time.Time) error {
	if latest := time.Now().Add(farewell); t.After(latest) {
		t = latest
	}
	return c.TCPConn.SetDeadline(t)
}

// askIdle makes the pool ask whether a connection that was idle for a second is alive. If its server is silent, all
// connections to it are given up at once, not one after the other. open returns the pool, once it is made.
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
		return err != nil // the pool asks again, finds at once that it is closed, and takes another
	}
}
