package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// sharedStream is one NATS stream that two processes publish to. It is made by hand, as where it is not one process's own.
type sharedStream struct {
	*broker.NATS
	clock history.Clock
}

const sharedName = "shared" // of stream, exchange, queue and topic

func openCellStream(ctx context.Context, clock history.Clock) (cellReceiver, error) {
	server, err := broker.StartNATS(ctx, broker.NATSConfig{})
	if err != nil {
		return nil, err
	}
	s := sharedStream{server, clock}
	err = s.use(func(js jetstream.JetStream) error {
		_, err := js.CreateStream(ctx, s.config(1))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s sharedStream) config(first uint64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: sharedName, Subjects: []string{sharedName, "ordered-fence.*"}, FirstSeq: first, AllowRollup: true, AllowDirect: true,
	}
}

func (s sharedStream) name() string { return "NATS stream" }

func (s sharedStream) processes() []cellProcess {
	sink := fmt.Sprintf("      nats: {url: \"nats://%s\", user: %s, password: %s, stream: %[4]s, subject: %[4]s, window: 7, timeout: %v}",
		s.Addr(), broker.NATSUser, broker.NATSPassword, sharedName, webhookTimeout)
	return []cellProcess{
		{name: "cell_bare_stream_1", table: "bare", sink: sink, checkpoint: 7},
		{name: "cell_bare_stream_2", table: "bare", sink: sink, checkpoint: 7},
	}
}

func (s sharedStream) use(do func(jetstream.JetStream) error) error {
	connection, err := nats.Connect(s.URL(s.Addr()))
	if err != nil {
		return err
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	return do(js)
}

func (s sharedStream) read(ctx context.Context) (all []history.Receipt, err error) {
	err = s.use(func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, sharedName)
		if err != nil {
			return err
		}
		consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{sharedName}})
		if err != nil {
			return err
		}
		for {
			batch, err := consumer.FetchNoWait(1000)
			if err != nil {
				return err
			}
			n := len(all)
			for m := range batch.Messages() {
				all = append(all, s.receipt(m))
			}
			if err := batch.Error(); err != nil || len(all) == n {
				return err
			}
		}
	})
	return all, err
}

func (s sharedStream) receipt(m jetstream.Msg) history.Receipt {
	h := m.Headers()
	sequence, _ := strconv.ParseInt(h.Get("ordered-sequence"), 10, 64)
	epoch, _ := strconv.ParseInt(h.Get("ordered-epoch"), 10, 64)
	r := history.Receipt{
		Process: h.Get("ordered-process"), Receiver: s.name(), Key: decoded(h.Get("ordered-key")), Hash: digest(m.Data()),
		DedupKey: decoded(h.Get("ordered-dedup-key")), Sequence: sequence, Epoch: epoch,
	}
	if about, err := m.Metadata(); err == nil {
		r.T = s.clock.At(about.Timestamp)
	}
	return r
}

// empty deletes the stream and makes it anew, in turn with a purge. A new one goes on with larger sequences, as the handbook
// asks for.
func (s sharedStream) empty(ctx context.Context) error {
	return s.use(func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, sharedName)
		if err != nil {
			return err
		}
		last := stream.CachedInfo().State.LastSeq
		if last%2 == 0 {
			return stream.Purge(ctx)
		}
		if err := js.DeleteStream(ctx, sharedName); err != nil {
			return err
		}
		for range 20 { // the server removes the files of the other one in the background, and may have no room for these meanwhile
			pause(ctx, 300*time.Millisecond)
			if _, err = js.CreateStream(ctx, s.config(last+1_000_000)); err == nil {
				break
			}
		}
		return err
	})
}

func (s sharedStream) close(ctx context.Context) error { return s.NATS.Close(ctx) }
