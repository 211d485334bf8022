package pubsub_test

import (
	"context"
	"testing"

	client "cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Why the sink does without the client's Publisher: what follows are its properties,
// not ours. If one of these tests fails, read docs/decisions/0017 again.

func publisher(t testing.TB, b *bench) *client.Publisher {
	t.Helper()
	p := b.client(t).Publisher("orders")
	p.EnableMessageOrdering = true
	p.PublishSettings.CountThreshold = 1
	t.Cleanup(p.Stop)
	return p
}

func message(sequence string) *client.Message {
	return &client.Message{Attributes: map[string]string{"ordered-sequence": sequence}, OrderingKey: "a"}
}

// It publishes after its caller has been told that the call is over: a worker that
// lost its lease would go on.
func TestClientsPublisher_GoesOnBehindItsCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := publisher(t, b)
	over, refused := make(chan struct{}), make(chan struct{}, 1)
	b.answers(func(*pb.PublishRequest) error {
		select {
		case <-over:
			return nil
		default:
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return status.Error(codes.Unavailable, "not now")
	})
	ctx, cancel := context.WithCancel(t.Context())
	result := p.Publish(ctx, message("1"))
	<-refused
	cancel()
	_, err := result.Get(ctx)
	require.ErrorIs(t, err, context.Canceled)
	close(over)
	_, err = result.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", b.landed())
}

// Behind a failure with an ordering key, what is queued fails too, and so does all
// that comes later, until the key is resumed.
func TestClientsPublisher_FailsWhatIsBehindAFailureUntilItIsResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := publisher(t, b)
	first := make(chan struct{})
	b.answers(func(*pb.PublishRequest) error {
		<-first
		return status.Error(codes.InvalidArgument, "no")
	})
	results := []*client.PublishResult{p.Publish(t.Context(), message("1")), p.Publish(t.Context(), message("2"))}
	close(first)
	var paused client.ErrPublishingPaused
	_, err := results[0].Get(t.Context())
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = results[1].Get(t.Context())
	require.ErrorAs(t, err, &paused)
	_, err = p.Publish(t.Context(), message("3")).Get(t.Context())
	require.ErrorAs(t, err, &paused)
	require.Equal(t, "1", b.requested())
	p.ResumePublish("a")
	b.answers(nil)
	_, err = p.Publish(t.Context(), message("4")).Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, "4", b.landed())
}
