package pubsub_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Only HideAnswers keeps the access token out, as its comment says.
func TestGuard_OnDemandTheAccessTokenIsNotQuoted(t *testing.T) {
	t.Parallel()
	const token = "ya29.LIVE-ACCESS-TOKEN-1234567890"
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": %q, "expires_in": 3600, "token_type": "Bearer"}`, token)
	}))
	t.Cleanup(tokens.Close)
	b, sink := authenticated(t, userFile(t, tokens.URL))
	b.answers(func(*pb.PublishRequest) error { return status.Error(codes.Unavailable, "no to Bearer "+token) })
	_, err := sinktest.Deliver(t, sink(true), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "Unavailable")
	require.NotContains(t, err.Error(), token)
	require.NotContains(t, err.Error(), "no to")
}
