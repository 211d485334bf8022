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
	// answered: the error is the server's answer, and the connection is intact.
	answered bool
	// unknown: the server may have the messages all the same.
	unknown bool
	// refused: the server does not take these messages, now or later.
	refused bool
	// denied: the server takes no messages from us, or none at this address.
	denied bool
}

func (f *failure) Unwrap() error { return f.error }

// Timeout reports an unknown outcome, as the processor asks for it. It is false for a request that had no time to be
// sent.
func (f *failure) Timeout() bool { return f.unknown }

// isDenied reports whether Pub/Sub refuses us: see isDenial.
func isDenied(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.denied
}

// isDenial reports a code that every message would meet until somebody changes something. Its causes are the
// credentials and their rights, a missing topic, a region that the topic's policy does not allow, an encryption key
// that Pub/Sub cannot use, and an endpoint that is not Pub/Sub.
func isDenial(code codes.Code) bool {
	switch code {
	case codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// besideAnOpenOne is the failure of a request while another request of the window has no known answer. Whatever the
// server answered about this one, it may have records of the other. An error that is not about the record is not an
// attempt of it here, either.
func besideAnOpenOne(f *failure) *failure {
	err := fmt.Errorf("Pub/Sub may have records of this window: for some there is no answer, and for this one: %w", outcome.Text(f))
	if processor.IsUnreached(f) || f.denied {
		err = processor.Unreached(outcome.Outage(err))
	}
	return &failure{error: err, unknown: true}
}

// failed sorts the end of a request by its gRPC code. A quota is ours and not the record's, and passes by itself. For
// codes that it does not name, either the server may have the request, or the client made the code from an event of
// the connection.
func failed(ctx context.Context, err error, sent bool) *failure {
	switch code := status.Code(err); {
	case !sent:
		return &failure{error: processor.Unreached(later(fmt.Errorf("nothing was sent: %w%s", ended(ctx, err), nextStep(err)), err))}
	case code == codes.InvalidArgument || code == codes.OutOfRange:
		return &failure{error: err, answered: true, refused: true}
	case isDenial(code):
		return &failure{error: fmt.Errorf("%w%s", err, nextStep(err)), answered: true, denied: true}
	case code == codes.ResourceExhausted:
		return &failure{error: processor.Unreached(later(fmt.Errorf("%w%s", err, nextStep(err)), err)), answered: true}
	default:
		return &failure{error: fmt.Errorf("Pub/Sub may have the record: %w", ended(ctx, err)), unknown: true}
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

// nextStep returns the fix for the server's error.
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
		return "; a quota is used up, or an ordering key takes more than 1 MB/s: wait, or have the quota raised. A proxy or an emulator may also refuse a request in this way because it is too large"
	case codes.Unavailable:
		return "; check that the service is up and can be reached from here, at endpoint, emulator, or else Google's own address"
	case codes.FailedPrecondition:
		return "; the topic's message storage policy may not allow this region (set endpoint to one that it allows), or Pub/Sub cannot use the topic's encryption key"
	case codes.Unimplemented:
		return "; the server there is not Pub/Sub: correct endpoint or emulator"
	default:
		return ""
	}
}
