package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	clientName = "ordered-dispatcher"
	settingMax = "proto-max-bulk-len"
	// idle is how long a connection may be unused before it is tried: Redis, or something on the way, may have closed it.
	idle = time.Second
)

// link is a connection. One on which anything went wrong is closed and never used again.
type link struct {
	socket *socket
	client *redis.Client
	conn   *redis.Conn
	// loggedIn: before that, the client returns an error of the login as one of the command.
	loggedIn bool
	loaded   bool  // Redis has the script
	limit    int64 // bytes of a value that Redis takes; 0 is not known
	used     time.Time
}

// connect makes sure that there is a connection that works.
func (s *Sink) connect(ctx context.Context) error {
	if s.link != nil && time.Since(s.link.used) > idle && s.link.name(ctx, s.config.Timeout) != nil {
		s.drop()
	}
	if s.link != nil {
		return nil
	}
	l, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.link = l
	return nil
}

// open connects and logs in.
func (s *Sink) open(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("the connection took longer than timeout (%v): %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	socket, err := s.dial(ctx)
	if err != nil {
		return nil, ended(ctx, err)
	}
	l := s.over(socket)
	err = l.name(ctx, s.config.Timeout)
	if err == nil {
		err = l.askLimit(ctx)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// dial makes the connection that the client uses. Its own dialling would be tried several times, and log.
func (s *Sink) dial(ctx context.Context) (*socket, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.server.address())
	if err != nil || s.server.scheme != tlsScheme {
		return &socket{Conn: conn}, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.config.TLS != nil {
		config = s.config.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = s.server.host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &socket{Conn: secured}, nil
}

// over has the client use one connection, once, and sends nothing yet. Its time is bounded by cut.
func (s *Sink) over(socket *socket) *link {
	dialled := make(chan net.Conn, 1)
	dialled <- socket
	close(dialled)
	const none, unbounded = -1, -2
	l := &link{socket: socket, used: time.Now()}
	client := redis.NewClient(&redis.Options{
		Addr: s.server.address(), Username: s.server.user, Password: s.server.password, DB: s.server.database, Protocol: 2,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if conn, ok := <-dialled; ok {
				return conn, nil
			}
			return nil, net.ErrClosed
		},
		OnConnect: func(context.Context, *redis.Conn) error { l.loggedIn = true; return nil },
		PoolSize:  1, PipelinePoolSize: none, MaxRetries: none, DialerRetries: 1, ReadTimeout: unbounded, WriteTimeout: unbounded, ConnMaxIdleTime: none,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	l.client, l.conn = client, client.Conn()
	return l
}

// name logs in where that has not been done, and gives the connection a name for CLIENT LIST. A user without the right to
// that is answered, too, which shows that the connection works.
func (l *link) name(ctx context.Context, timeout time.Duration) error {
	ctx, end := l.within(ctx, timeout)
	defer end()
	err := l.conn.ClientSetName(ctx, clientName).Err()
	if l.loggedIn && (code(err) == codeNoPermission || code(err) == "ERR") {
		err = nil
	}
	return ended(ctx, heard(err))
}

// askLimit asks for the largest value that Redis takes, if the user may know.
func (l *link) askLimit(ctx context.Context) error {
	ctx, end := l.within(ctx, time.Hour) // ctx has an end
	defer end()
	settings, err := l.conn.ConfigGet(ctx, settingMax).Result()
	if code(err) == codeNoPermission || code(err) == "ERR" {
		return nil
	}
	l.limit, _ = strconv.ParseInt(settings[settingMax], 10, 64)
	return ended(ctx, heard(err))
}

// within bounds what is said over the link, which the client does not.
func (l *link) within(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded))
	stop := context.AfterFunc(ctx, l.cut)
	return ctx, func() {
		stop()
		cancel()
		l.used = time.Now()
	}
}

// cut ends the connection.
func (l *link) cut() { _ = l.socket.Close() }

func (l *link) close() {
	l.cut()
	_, _ = l.conn.Close(), l.client.Close()
}

func (s *Sink) drop() {
	if s.link != nil {
		s.link.close()
	}
	s.link = nil
}

// socket counts what it writes, and ends a connection on which Redis says what would exhaust the memory.
type socket struct {
	net.Conn
	written atomic.Int64 // bytes that the network has taken, or may have
	replies replies
}

func (s *socket) Write(p []byte) (int, error) {
	s.replies.begin()
	s.written.Add(int64(len(p))) // before: a write that is cut off may be counted while it goes on
	n, err := s.Conn.Write(p)
	s.written.Add(int64(n - len(p)))
	return n, err
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if fault := s.replies.follow(p[:n]); fault != nil {
		_ = s.Conn.Close()
		return 0, fault
	}
	return n, err
}

// ended is the end of ctx, if that is what ended a call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !isAnswer(err) {
		return context.Cause(ctx)
	}
	return err
}
