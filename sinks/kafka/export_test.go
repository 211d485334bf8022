package kafka

import (
	"context"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"
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

// Dial has s make its connections by f.
func (s *Sink) Dial(f func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.dial = f
}
