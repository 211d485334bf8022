package kafka

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Redirect sends all connections of s to one address, whatever the cluster calls
// its brokers.
func (s *Sink) Redirect(address string) {
	s.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// OnHandingOver calls f before each record that the client gets.
func (s *Sink) OnHandingOver(f func(*kgo.Record)) {
	s.more = append(s.more, kgo.WithHooks(handingOver(f)))
}

type handingOver func(*kgo.Record)

// OnProduceRecordBuffered is called by the client.
func (f handingOver) OnProduceRecordBuffered(r *kgo.Record) { f(r) }

// OnFailure calls f when the client gives up the first record.
func (s *Sink) OnFailure(f func()) {
	s.more = append(s.more, kgo.WithHooks(&failure{f: f}))
}

type failure struct {
	once sync.Once
	f    func()
}

// OnProduceRecordUnbuffered is called by the client.
func (f *failure) OnProduceRecordUnbuffered(_ *kgo.Record, err error) {
	if err != nil {
		f.once.Do(f.f)
	}
}

// Dial has s make its connections by f.
func (s *Sink) Dial(f func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.dial = f
}

// EndBefore sends a record through a client that has ended with the call, before the window hears of that, and returns its error.
func EndBefore(call, window context.Context, brokers ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ManualFlushing())
	if err != nil {
		return err
	}
	l := &link{client: client, end: client.Close}
	l.written.begin(func(error) {})
	l.end()
	p, _ := l.flush(call, window, []*kgo.Record{{Topic: "t"}})
	return p.err
}

// SendPart has the client begin to send each window that is larger when it has n records of it, as it may do by itself on a busy machine.
func (s *Sink) SendPart(n int64) {
	frozen := make(frozen, 1)
	s.more = append(s.more, kgo.WithCompressor(frozen))
	s.OnHandingOver(func(*kgo.Record) {
		client := s.link.client
		switch client.BufferedProduceRecords() {
		case 1:
			select {
			case <-frozen: // of the window before
			default:
			}
		case n:
			go func() { _ = client.Flush(context.Background()) }()
			select {
			case <-frozen:
			case <-time.After(time.Minute): // the delivery has no more time, either, and fails
			}
		}
	})
}

// frozen is told when the client encodes a batch: what comes after that is another one.
type frozen chan struct{}

// Compress is called by the client.
func (f frozen) Compress(_ *bytes.Buffer, batch []byte, _ ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	select {
	case f <- struct{}{}:
	default:
	}
	return batch, kgo.CodecNone
}

// Limit has the client speak to brokers as one of an older Kafka does.
func (s *Sink) Limit(versions *kversion.Versions) {
	s.more = append(s.more, kgo.MaxVersions(versions))
}

// OnAcknowledged calls f with each record that the client has done with.
func (s *Sink) OnAcknowledged(f func(*kgo.Record)) {
	s.more = append(s.more, kgo.WithHooks(acknowledgedHook(f)))
}

type acknowledgedHook func(*kgo.Record)

// OnProduceRecordUnbuffered is called by the client.
func (f acknowledgedHook) OnProduceRecordUnbuffered(r *kgo.Record, _ error) { f(r) }

// CloseIdle has the client close the connections that were idle for so long, and returns how many it has.
func (s *Sink) CloseIdle(after time.Duration) (open func() int64) {
	c := new(connections)
	s.more = append(s.more, kgo.ConnIdleTimeout(after), kgo.WithHooks(c))
	return c.open.Load
}

type connections struct{ open atomic.Int64 }

// OnBrokerConnect is called by the client.
func (c *connections) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, conn net.Conn, _ error) {
	if conn != nil {
		c.open.Add(1)
	}
}

// OnBrokerDisconnect is called by the client.
func (c *connections) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { c.open.Add(-1) }
