package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	vkit "cloud.google.com/go/pubsub/v2/apiv1"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// open connects and checks whether the topic can take records.
func (s *Sink) open(ctx context.Context) (*vkit.TopicAdminClient, error) {
	ctx, cancel := s.bounded(ctx, "no connection")
	defer cancel()
	options, err := s.config.options()
	if err != nil {
		return nil, err
	}
	client, err := vkit.NewTopicAdminClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	// Without options a call is made once, and ends with its context.
	client.CallOptions = &vkit.TopicAdminCallOptions{}
	if err := s.checkTopic(ctx, client); err != nil {
		_ = client.Close()
		return nil, ended(ctx, err)
	}
	return client, nil
}

func (c Config) options() ([]option.ClientOption, error) {
	all := []option.ClientOption{
		option.WithTelemetryDisabled(), // the processor has the spans
		option.WithUserAgent("ordered-dispatcher"),
		option.WithGRPCConnectionPool(1),
		option.WithGRPCDialOption(grpc.WithStatsHandler(noticeSent{})),
	}
	if c.Emulator != "" {
		return append(all, option.WithEndpoint(c.Emulator), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))), nil
	}
	if c.Endpoint != "" {
		all = append(all, option.WithEndpoint(c.Endpoint))
	}
	if c.TLS != nil {
		all = append(all, option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(c.TLS.Clone()))))
	}
	if path := os.Getenv(defaultCredentials); c.Credentials == "" && path != "" {
		if _, err := bounded.File(path); err != nil { // the client reads it without a bound
			return nil, fmt.Errorf("read credentials: %w", err)
		}
	}
	if c.Credentials != "" {
		file, err := readCredentials(c.Credentials)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

// readCredentials returns errors that quote nothing of the file.
func readCredentials(path string) (option.ClientOption, error) {
	text, err := bounded.File(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	var file struct{ Type string }
	if json.Unmarshal(text, &file) != nil || file.Type == "" {
		return nil, fmt.Errorf("credentials in %s are not a JSON of Google Cloud with a type, such as the key of a service account", path)
	}
	return option.WithAuthCredentialsJSON(option.CredentialsType(file.Type), text), nil
}

// errNoSubscription: Pub/Sub acknowledges messages to such a topic, and drops them.
var errNoSubscription = errors.New("the topic has no subscription and retains no messages: what is published would be lost; " +
	"create a subscription first (gcloud pubsub subscriptions create … --enable-message-ordering)")

// checkTopic finds a topic that does not exist, or that loses acknowledged messages. The server does not answer this
// to an account that may only publish.
func (s *Sink) checkTopic(ctx context.Context, client *vkit.TopicAdminClient) error {
	_, err := client.ListTopicSubscriptions(ctx, &pb.ListTopicSubscriptionsRequest{Topic: s.topic, PageSize: 1}).Next()
	if errors.Is(err, iterator.Done) {
		var topic *pb.Topic
		topic, err = client.GetTopic(ctx, &pb.GetTopicRequest{Topic: s.topic})
		if err == nil && topic.GetMessageRetentionDuration().AsDuration() <= 0 {
			return errNoSubscription
		}
	}
	if status.Code(err) == codes.PermissionDenied {
		return nil
	}
	return err
}

// noticeSent lets a call know whether its request has left: from then on the server decides its outcome.
type noticeSent struct{}

type sentKey struct{}

// exchange records the state of a request and its answer.
type exchange struct {
	sent  atomic.Bool // the request has left
	heard atomic.Bool // something has come back, even if it came before that
}

// explained returns the error of the exchange. If nothing left and nothing came back, it is the client's own error.
func (x *exchange) explained(err error) error {
	if x.sent.Load() || x.heard.Load() {
		return err
	}
	return unheard(err)
}

func (noticeSent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (noticeSent) HandleRPC(ctx context.Context, event stats.RPCStats) {
	x, ok := ctx.Value(sentKey{}).(*exchange)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutPayload:
		x.sent.Store(true)
	case *stats.InHeader, *stats.InTrailer:
		x.heard.Store(true)
	}
}

func (noticeSent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (noticeSent) HandleConn(context.Context, stats.ConnStats) {}

// bounded returns ctx with the sink's time for one exchange.
func (s *Sink) bounded(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("%s within %v: %w", what, s.config.Timeout, context.DeadlineExceeded))
}

// ended returns the cause of ctx's end, if that ended the call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
