package pubsub

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// failure is a request that was not acknowledged.
type failure struct {
	error
	// answered: the server said so, and the connection is whole.
	answered bool
	// unknown: the server may have the messages all the same.
	unknown bool
	// refused: the server does not take these messages, now or later.
	refused bool
	// denied: the server does not take messages of ours, or there.
	denied bool
}

func (f *failure) Unwrap() error { return f.error }

// Timeout reports an unknown outcome, as the processor asks for it: not that of a
// request which had no time to be sent.
func (f *failure) Timeout() bool { return f.unknown }

// isDenied reports whether Pub/Sub refuses us: the credentials, their rights, or a
// topic that is not there.
func isDenied(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.denied
}

func isDenial(code codes.Code) bool {
	return code == codes.NotFound || code == codes.PermissionDenied || code == codes.Unauthenticated
}

// besideAnOpenOne is the failure of a request while another one of the window has no answer that is known: whatever the
// server said of this one, it may have records of the other.
func besideAnOpenOne(f *failure) *failure {
	err := fmt.Errorf("Pub/Sub may have records of this window: for some there is no answer, and for this one: %w", outcome.Text(f))
	if processor.IsUnreached(f) {
		err = processor.Unreached(outcome.Outage(err))
	}
	return &failure{error: err, unknown: true}
}

// failed sorts what a request ended with by the code of gRPC.
func failed(ctx context.Context, err error, sent bool) *failure {
	switch code := status.Code(err); {
	case !sent:
		return &failure{error: processor.Unreached(fmt.Errorf("nothing was sent: %w%s", ended(ctx, err), nextStep(err)))}
	case code == codes.InvalidArgument || code == codes.OutOfRange:
		return &failure{error: err, answered: true, refused: true}
	case isAnswer(code):
		return &failure{error: later(fmt.Errorf("%w%s", err, nextStep(err)), err), answered: true, denied: isDenial(code)}
	default:
		return &failure{error: fmt.Errorf("Pub/Sub may have the record: %w", ended(ctx, err)), unknown: true}
	}
}

// isAnswer: the server did not take the request on. Under the other codes it may
// have, or the client made them of what happened to the connection.
func isAnswer(code codes.Code) bool {
	switch code {
	case codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.ResourceExhausted, codes.FailedPrecondition, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// later passes on the delay that the server asks for.
func later(wrapped, err error) error {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return processor.RetryAfter(wrapped, info.GetRetryDelay().AsDuration())
		}
	}
	return wrapped
}

// nextStep is the fix for what the server says.
func nextStep(err error) string {
	switch status.Code(err) {
	case codes.NotFound:
		return "; create the topic (gcloud pubsub topics create) and its subscriptions (gcloud pubsub subscriptions create … --enable-message-ordering), or correct project and topic. " +
			"If it was deleted, what its deleted subscriptions had not delivered is gone: `seek` back to what receivers lack, to have it sent again"
	case codes.PermissionDenied:
		return "; grant roles/pubsub.publisher on the topic to the account of the credentials"
	case codes.Unauthenticated:
		return "; correct the credentials"
	case codes.ResourceExhausted:
		return "; a quota is used up, or an ordering key takes more than 1 MB/s"
	case codes.Unavailable:
		return "; see whether the service is up and reached from here: its address is endpoint, or emulator, or else Google's own"
	case codes.FailedPrecondition:
		return "; the topic's message storage policy may not allow this region (set endpoint to one that it allows)"
	default:
		return ""
	}
}
