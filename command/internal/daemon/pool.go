package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgwall"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

const (
	applicationName = "ordered-dispatcher"

	// A process holds one connection for its lease and one for reading. Two more serve the questions of metrics, of
	// health and of the guard of the partitions; each asks one at a time.
	connsPerProcess = 2
	spareConns      = 2
)

// connsFor returns how many connections that many processes need.
func connsFor(processes int) int32 { return int32(processes*connsPerProcess + spareConns) }

// poolConns returns how many connections the pool of a worker has: one more for the questions of receivers, and one for
// the notifier.
func (c Config) poolConns() int32 {
	n := connsFor(len(c.Processes))
	if c.ListenToken != "" {
		n++
	}
	if len(c.Notify.Targets) > 0 {
		n++
	}
	return n
}

// enoughConns refuses a pool in which processes would wait for each other's connections.
func enoughConns(allowed int32, processes int) error {
	if need := connsFor(processes); allowed < need {
		return fmt.Errorf("pool_max_conns in the connection string allows %d connections, and %d processes need %d: remove it, or raise it to %[3]d",
			allowed, processes, need)
	}
	return nil
}

// poolConfig reads a connection string for that many processes. Its errors show no part of the string.
func poolConfig(database string, processes int) (*pgxpool.Config, error) {
	if err := pgurl.CheckScheme(database); err != nil {
		return nil, err
	}
	if err := pgurl.CheckFiles(database); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, unreadable(database, err)
	}
	if !given(database, "pool_max_conns", "") {
		config.MaxConns = connsFor(processes)
	}
	c := config.ConnConfig
	if err := pgurl.CheckPasswords(database, c); err != nil {
		return nil, err
	}
	if err := pgurl.CheckParameters(c.RuntimeParams); err != nil {
		return nil, err
	}
	// Nothing is prepared, so PgBouncer in transaction mode may be in between.
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.RuntimeParams = pgurl.Lowered(c.RuntimeParams)
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = applicationName
	}
	if c.RuntimeParams["client_encoding"] == "" { // a role or a database may have another one
		c.RuntimeParams["client_encoding"] = "UTF8"
	}
	switch {
	case c.ConnectTimeout != 0:
	case severalHosts(c):
		c.ConnectTimeout = hostTimeout
	default:
		c.ConnectTimeout = connectTimeout
	}
	timed(&c.Config)
	pgwall.Bound(&c.Config, 0) // the source bounds the size of a record
	if severalHosts(c) && !given(database, "target_session_attrs", "PGTARGETSESSIONATTRS") {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config, nil
}

// given reports whether a connection string, or the environment, has a setting.
func given(database, setting, variable string) bool {
	return strings.Contains(database, setting) || variable != "" && os.Getenv(variable) != ""
}

func severalHosts(c *pgx.ConnConfig) bool {
	for _, fallback := range c.Fallbacks {
		if fallback.Host != c.Host || fallback.Port != c.Port {
			return true
		}
	}
	return false
}

// unreadable explains a connection string that cannot be read. It shows the driver's message only if that repeats
// nothing of the string: pieces of it may be pieces of a password with special characters.
func unreadable(database string, err error) error {
	if missing := pgurl.MissingFile(database); missing != nil {
		return missing
	}
	cause := errors.Unwrap(err)
	if _, urlErr := url.Parse(database); urlErr != nil || cause == nil {
		return errors.New("the connection string cannot be read: " + pgurl.HowToConnect)
	}
	text := quotation.ReplaceAllString(cause.Error(), "…")
	if repeats(text, database) {
		return errors.New("the connection string cannot be read: " + pgurl.HowToConnect)
	}
	return fmt.Errorf("the connection string cannot be read (%s): %s", text, pgurl.HowToConnect)
}

// quotation matches the text that the driver, and other libraries, put between quotes.
var quotation = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

var word = regexp.MustCompile(`[\pL\pN_]+`)

// repeats reports whether a text contains a word of a connection string, other than the name of the setting that is
// most often wrong.
func repeats(text, database string) bool {
	decoded, err := url.QueryUnescape(database)
	if err != nil {
		decoded = database
	}
	return slices.ContainsFunc(word.FindAllString(text, -1), func(word string) bool {
		return word != "sslmode" && (strings.Contains(database, word) || strings.Contains(decoded, word))
	})
}

// openPool returns a pool that connects when it is first needed, so that the program also starts while the database
// is down.
func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	var pool *pgxpool.Pool
	askIdle(config, func() *pgxpool.Pool { return pool })
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the connection pool: %w", err)
	}
	return pool, nil
}

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

// askTimeout bounds each question of the daemon and of its commands to the database, and connWait bounds the wait for
// a connection. After that the question fails. Stores and sources have deadlines of their own.
const (
	connWait   = connectTimeout + 5*time.Second
	askTimeout = 10 * time.Second
)

// ask runs f in a transaction in which names without a schema mean PostgreSQL's own.
func ask(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, pgx.Tx) error) error {
	return onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		return prepared.Within(ctx, conn, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}

// onConn lends f a connection. Every question of this package goes through it.
func onConn(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	return answer.OnConn(ctx, pool, answer.Wait{Connection: connWait, Answer: askTimeout}, f)
}

// binary makes PostgreSQL send the values of a query in binary form. So the DateStyle of a role does not change
// times.
const binary = pgx.QueryExecModeDescribeExec
