package main

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// streams are a NATS server on which each process that publishes there declares a stream of its own.
type streams struct {
	*broker.NATS
	clock history.Clock
}

// duplicateWindow is the shortest that the server takes: what a worker sends again later than that, it must itself have
// found missing in the stream.
const duplicateWindow = 100 * time.Millisecond

func (f *field) openStreams(ctx context.Context) error {
	server, err := broker.StartNATS(ctx, broker.NATSConfig{})
	if err != nil {
		return err
	}
	f.brokers[history.Stream] = streams{server, f.clock}
	return nil
}

// read returns the messages of a stream without its claims, as the server keeps and dates them.
func (s streams) read(ctx context.Context, process string) (all []history.Applied, err error) {
	connection, err := nats.Connect(s.URL(s.Addr()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, process)
	if err != nil {
		return nil, err
	}
	for n := stream.CachedInfo().State.FirstSeq; n <= stream.CachedInfo().State.LastSeq; n++ {
		m, err := stream.GetMsg(ctx, n)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			continue // a claim that another one has replaced
		case err != nil:
			return nil, err
		case m.Subject == process:
			all = append(all, s.applied(process, m))
		}
	}
	return all, nil
}

func (s streams) applied(process string, m *jetstream.RawStreamMsg) history.Applied {
	sequence, _ := strconv.ParseInt(m.Header.Get("ordered-sequence"), 10, 64)
	epoch, _ := strconv.ParseInt(m.Header.Get("ordered-epoch"), 10, 64)
	return history.Applied{
		N: int64(m.Sequence), T: s.clock.At(m.Time), Process: process, Hash: digest(m.Data), Sequence: sequence, Epoch: epoch,
		Key: decoded(m.Header.Get("ordered-key")), Position: decoded(m.Header.Get("ordered-position")),
	}
}

// decoded is what docs/sinks/nats.md has receivers read: control characters are percent-encoded.
func decoded(header string) string {
	if text, err := url.PathUnescape(header); err == nil {
		return text
	}
	return header
}
