package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// heartbeat is how soon a silent broker is noticed, within a factor of two.
const heartbeat = 5 * time.Second

// link is a connection with its channel. After any failure a link is closed and never used again.
type link struct {
	socket     *socket
	connection *amqp.Connection
	channel    *amqp.Channel
	returns    chan amqp.Return
	closed     chan *amqp.Error // of the channel: its one error
	alarm      alarm
	returned   map[string]*returned // of the window, by id
	window     []sent               // on their way; after a call only those that an alarm holds up
	broken     bool                 // by a write that was cut off, or by the broker
}

// open connects, asks for confirms, and declares or checks the exchange.
func (s *Sink) open(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, lateError{timeout: s.config.Timeout})
	defer cancel()
	l := &link{
		returns:  make(chan amqp.Return, s.config.Window),
		closed:   make(chan *amqp.Error, 1),
		alarm:    alarm{over: make(chan struct{}, 1)},
		returned: map[string]*returned{},
	}
	began := time.Now()
	err := l.dial(ctx, s.config)
	if err = s.hungUp(err, l, time.Since(began)); err != nil {
		return nil, l.late(err)
	}
	// The steps after this would wait for the broker without end.
	defer context.AfterFunc(ctx, l.cut)()
	if err = l.prepare(s.config); err != nil {
		l.cut()
	}
	return l, l.late(ended(ctx, err))
}

// late adds to an error that ran out of time for the connection whether the broker had answered.
func (l *link) late(err error) error {
	var late lateError
	if errors.As(err, &late) {
		late.answered = l.socket != nil && l.socket.heard.Load()
		return late
	}
	return err
}

func (l *link) dial(ctx context.Context, c Config) error {
	stop := func() bool { return true }
	defer func() { stop() }()
	connection, err := amqp.DialConfig(c.URL, amqp.Config{
		Heartbeat:       heartbeat,
		FrameSize:       maxFrame,
		TLSClientConfig: tlsConfig(c),
		Properties:      amqp.Table{"connection_name": "ordered-dispatcher", "product": "ordered-dispatcher"},
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l.socket = &socket{Conn: conn, opaque: overTLS(c)}
			stop = context.AfterFunc(ctx, l.cut) // the client has deadlines of its own for the handshake, and knows no context
			return l.socket, nil
		},
	})
	if err != nil && l.socket != nil {
		l.cut()
	}
	l.connection = connection
	return ended(ctx, err)
}

func overTLS(c Config) bool {
	u, err := amqp.ParseURI(c.URL)
	return err == nil && u.Scheme == "amqps"
}

func tlsConfig(c Config) *tls.Config {
	if c.TLS != nil {
		return c.TLS.Clone()
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

func (l *link) prepare(c Config) (err error) {
	go l.alarm.watch(l.connection.NotifyBlocked(make(chan amqp.Blocking, 1)))
	if l.channel, err = l.connection.Channel(); err != nil {
		return err
	}
	l.channel.NotifyClose(l.closed)
	l.channel.NotifyReturn(l.returns)
	if err := l.channel.Confirm(false); err != nil {
		return err
	}
	switch {
	case c.Exchange == "":
		return nil
	case c.Type == "":
		return l.channel.ExchangeDeclarePassive(c.Exchange, amqp.ExchangeDirect, true, false, false, false, nil)
	default:
		err := l.channel.ExchangeDeclare(c.Exchange, c.Type, true, false, false, false, nil)
		if code(err) == amqp.PreconditionFailed {
			return fmt.Errorf("%w: %w", errDeclare, err)
		}
		if code(err) == amqp.CommandInvalid {
			return fmt.Errorf("%w: %w", errType, err)
		}
		return err
	}
}

// socket notes that the broker closed a connection: we did not close it, and its time was not over. It ends a
// connection on which the broker sends something that would exhaust the memory. Over TLS it does not see that, but
// there the broker has shown its certificate.
type socket struct {
	net.Conn
	ended   atomic.Bool
	heard   atomic.Bool // the broker has answered
	opaque  bool
	frames  frames
	written atomic.Int64 // bytes that the network has taken, or may have
}

func (s *socket) Write(p []byte) (int, error) {
	s.written.Add(int64(len(p))) // before the write: one that is cut off may be counted while it goes on
	n, err := s.Conn.Write(p)
	s.written.Add(int64(n - len(p)))
	return n, err
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.heard.Store(true)
	}
	if err == io.EOF || errors.Is(err, syscall.ECONNRESET) {
		s.ended.Store(true)
	}
	if s.opaque {
		return n, err
	}
	if fault := s.frames.follow(p[:n]); fault != nil {
		_ = s.Conn.Close()
		return 0, fault
	}
	return n, err
}

// ended reports whether the broker closed the connection.
func (l *link) ended() bool { return l.socket != nil && l.socket.ended.Load() }

// wasReturned returns why the broker returned a confirmed message; nil if it did not. A return comes before the confirm
// of its message, on the same goroutine, so each one belongs to a message of the window. For one of another message
// wasReturned returns errReturned, and the link is broken. It keeps no body and no header of what came back.
func (l *link) wasReturned(id string) (*returned, error) {
	for more := true; more; {
		select {
		case r, open := <-l.returns:
			if more = open; !open {
				continue
			}
			if !slices.ContainsFunc(l.window, func(p sent) bool { return p.message.MessageId == r.MessageId }) {
				l.broken = true
				return nil, errReturned
			}
			l.returned[r.MessageId] = &returned{r.ReplyCode, r.ReplyText}
		default:
			more = false
		}
	}
	r := l.returned[id]
	delete(l.returned, id)
	return r, nil
}

// dead reports whether the link can no longer be used.
func (l *link) dead() bool { return l.channel.IsClosed() || l.connection.IsClosed() }

// cut ends the connection without asking the broker.
func (l *link) cut() { _ = l.socket.Close() }

// closePatience bounds the wait for a broker's answer to the end of a connection.
const closePatience = 2 * time.Second

// close ends the connection, and asks the broker first. A broker that is silent, or reads nothing under an alarm,
// does not answer. The client has a deadline for that, too, but each heartbeat of the broker puts it off.
func (l *link) close() error {
	silent := time.AfterFunc(closePatience, l.cut)
	err := l.connection.Close()
	if !silent.Stop() {
		return nil // it is closed all the same
	}
	return err
}

// ended returns the cause of ctx's end, if that ended the call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
