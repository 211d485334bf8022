package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// heartbeat is how soon a silent server is noticed, within a factor of three.
const heartbeat = 5 * time.Second

// link is a connection, and the sink's knowledge of the stream over it. After any failure a link is closed and never
// used again.
type link struct {
	connection *nats.Conn
	js         jetstream.JetStream
	stream     jetstream.Stream
	closed     chan struct{} // closed at the connection's end
	undialled  []string      // why servers could not be reached while it was made

	mu     sync.Mutex
	socket *framed
	broken error // why it was cut, if the server gave a reason

	claim claim
	ahead uint64 // see Sink
	// last is the sequence of the last message of ours in the stream.
	last uint64
	// fastest is the shortest time from a message to its acknowledgement.
	fastest time.Duration
	// subject is the last one that was found among the stream's.
	subject string
	// landed holds the ids of the records to be delivered that the tail has.
	landed map[string]bool
	// others holds the ids of records that go out under another id because a different message has their own.
	others map[string]string
}

// open connects to one of the servers.
func (s *Sink) open(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	l := &link{closed: make(chan struct{}), others: map[string]string{}, ahead: s.ahead, fastest: s.config.Timeout}
	login, err := s.config.login()
	if err != nil {
		return nil, err
	}
	s.guard.learn(login.secrets)
	options := append(l.options(ctx, s.config), login.options...)
	defer context.AfterFunc(ctx, l.cut)() // the handshake knows no context
	if l.connection, err = nats.Connect(s.config.URL, options...); err != nil {
		return nil, ended(ctx, l.undialledBy(heard(err)))
	}
	l.js, err = jetstream.New(l.connection, jetstream.WithPublishAsyncMaxPending(s.config.Window))
	return l, ended(ctx, err)
}

// undialledBy returns the client's error about a connection that was not made, with the addresses that were tried.
// The client does not name an address that refused.
func (l *link) undialledBy(err error) error {
	if !errors.Is(err, nats.ErrNoServers) || len(l.undialled) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(l.undialled, "; "))
}

// options leave no decision to the client: it never connects or sends anew by itself, which would lose the order.
func (l *link) options(ctx context.Context, c Config) []nats.Option {
	options := []nats.Option{
		nats.Name("ordered-dispatcher"),
		nats.NoReconnect(),
		// An INFO comes before the login: anyone at the address could name the server that gets the login.
		nats.IgnoreDiscoveredServers(),
		nats.Timeout(c.Timeout),
		nats.PingInterval(cmp.Or(c.heartbeat, heartbeat)),
		nats.SetCustomDialer(dialer(func(network, address string) (net.Conn, error) {
			socket, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				l.undialled = append(l.undialled, err.Error())
				return nil, err
			}
			conn := &framed{Conn: socket}
			l.use(conn)
			return conn, nil
		})),
		nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.fail(&said{err}) }),
	}
	if c.TLS != nil {
		options = append(options, nats.Secure(c.TLS.Clone()))
	}
	return options
}

// dialer is a function that is a nats.CustomDialer.
type dialer func(network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

func (l *link) use(socket *framed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.socket = socket
}

// fail ends the link because of an error of the server about it as a whole. The server answers a publishing that the
// user has no right to in no other way.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = err
	}
	l.mu.Unlock()
	l.cut()
}

// cut ends the connection without asking the server.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socket != nil {
		_ = l.socket.Close()
	}
}

// written returns how many bytes the network has taken over the link.
func (l *link) written() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket.written.Load()
}

// dead reports whether the link can no longer be used.
func (l *link) dead() bool { return l.connection.IsClosed() || l.cause() != nil }

// cause returns why the server broke the link, or nil.
func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// lost returns why the connection has ended.
func (l *link) lost() error {
	if err := l.cause(); err != nil {
		return err
	}
	return errors.Join(nats.ErrConnectionClosed, heard(l.connection.LastError()))
}

// within bounds requests over the link: by time, and by the end of its connection, which the client would not notice.
func (l *link) within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	bounded, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-l.closed:
			end(l.lost())
		case <-ctx.Done():
		}
	}()
	return bounded, func() { end(nil); cancel() }
}

// ended returns the cause of ctx's end, if that ended the call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
