package pubsub_test

import (
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// detailed is an answer with all that a status may hold.
func detailed(t *testing.T, code codes.Code) error {
	t.Helper()
	answer, err := status.New(code, "no: "+sinktest.Marker).WithDetails(
		&errdetails.ErrorInfo{Reason: sinktest.Marker, Domain: sinktest.Marker, Metadata: map[string]string{"authorization": "Bearer " + sinktest.Marker}},
		&errdetails.LocalizedMessage{Locale: "en", Message: "no\nlevel=ERROR msg=" + sinktest.Marker},
		&errdetails.DebugInfo{StackEntries: []string{sinktest.Marker}, Detail: sinktest.Marker},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Description: sinktest.Marker, Url: sinktest.Marker}}})
	require.NoError(t, err)
	return answer.Err()
}

func TestGuard_OnDemandNoDetailOfAnAnswerIsQuoted(t *testing.T) {
	t.Parallel()
	for code, ours := range map[codes.Code]string{
		codes.ResourceExhausted: "; a quota is used up", codes.PermissionDenied: "; grant roles/pubsub.publisher",
		codes.InvalidArgument: "InvalidArgument", codes.Unavailable: "Pub/Sub may have the record",
	} {
		b := newBench(t)
		answer := detailed(t, code)
		b.answers(func(*pb.PublishRequest) error { return answer })
		sinktest.Hides(t, b.sink(t, func(c *pubsub.Config) { c.HideAnswers = true }), `publish record "1"`, "rpc error: code = "+code.String()+" desc = […]", ours)
	}
}

func TestGuard_NoWordOfARecordIsQuoted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answers(func(*pb.PublishRequest) error {
		return status.Error(codes.ResourceExhausted, "cannot store "+sinktest.Repeated)
	})
	_, err := sinktest.Deliver(t, b.sink(t, nil), sinktest.Private())
	sinktest.RequirePrivate(t, err, "code = ResourceExhausted desc = cannot store")
}

func TestGuard_AnAnswerBreaksNoLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := detailed(t, codes.ResourceExhausted)
	b.answers(func(*pb.PublishRequest) error { return answer })
	_, err := sinktest.Deliver(t, b.sink(t, nil), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "level=ERROR msg="+sinktest.Marker, "it is quoted")
	require.NotContains(t, err.Error(), "\n")
}

// Nobody has said anything: what the client says of a connection that fails are no words of a receiver.
func TestGuard_HiddenAnswersHideNothingOfAConnectionThatFails(t *testing.T) {
	t.Parallel()
	closed := tcptest.Closed(t)
	for _, hide := range []bool{true, false} {
		s := sinktest.Made(t, pubsub.New, pubsub.Config{Project: project, Topic: "orders", Emulator: closed, HideAnswers: hide, Timeout: 10 * time.Second})
		sinktest.Hides(t, s, "nothing was sent: dial tcp "+closed, "connection refused; check that the service is up")
		sinktest.RequireHidden(t, s.Check(t.Context()), "connection refused; check that the service is up")
	}
}

// What a service says in the words of the client is the service's.
func TestGuard_AnAnswerThatReadsLikeAFailedConnectionIsHidden(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answers(func(*pb.PublishRequest) error {
		return status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp `+sinktest.Marker+`"`)
	})
	sinktest.Hides(t, b.sink(t, func(c *pubsub.Config) { c.HideAnswers = true }), "Pub/Sub may have the record", "code = Unavailable desc = […]")
}

// Key a gets a word, and of key b nobody knows. As long as that is so, the window is open.
func TestDeliverBatch_AKeyWithoutAnAnswerBesideAWordLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.ResourceExhausted, codes.FailedPrecondition} {
		for _, keys := range [][]string{{"a", "b"}, {"b", "a"}} {
			t.Run(code.String()+" "+keys[0], func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				restore := b.answers(func(r *pb.PublishRequest) error {
					if r.Messages[0].OrderingKey == "a" {
						return status.Error(code, "no")
					}
					return status.Error(codes.Unavailable, "lost")
				})
				s := b.sink(t, func(c *pubsub.Config) { c.OrderingKey, c.Window = "{{.Key}}", 10 })
				ds := keyed(2, keys...)
				n, err := sinktest.Deliver(t, s, ds)
				require.Zero(t, n)
				require.True(t, outcome.IsUnknown(err), err)
				require.False(t, processor.IsPermanent(err) || processor.IsRefused(err), err)
				require.Equal(t, keys[0] == "a" && code != codes.InvalidArgument, processor.IsUnreached(err), "the record is at fault for none of the others: %v", err)
				require.ErrorContains(t, err, "Pub/Sub may have")
				restore()
				sinktest.Delivered(t, s, ds)
			})
		}
	}
}
