package pubsub_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// The secrets of a person.
const (
	clientSecret = secrettest.Canary
	refreshToken = "1//CANARY-refresh-token"
)

// userFile are the credentials of a person, whose client sends both secrets for a token.
func userFile(t testing.TB, tokens string) (path string) {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"type": "external_account_authorized_user", "audience": "//iam.googleapis.com/locations/global/workforcePools/p/providers/q", "client_id": "id",
		"client_secret": clientSecret, "refresh_token": refreshToken, "token_url": tokens,
	})
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "user.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// authenticated is a sink with credentials, of a service that asks for them.
func authenticated(t *testing.T, file string) (b *bench, sink func(hide bool) *pubsub.Sink) {
	t.Helper()
	certificate, roots := selfSigned(t)
	b = newBench(t, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	return b, func(hide bool) *pubsub.Sink {
		return b.sink(t, func(c *pubsub.Config) {
			c.Emulator, c.Endpoint, c.Credentials, c.HideAnswers = "", b.link.Addr(), file, hide
			c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		})
	}
}

func requireNoCanary(t testing.TB, err error) {
	t.Helper()
	require.Error(t, err)
	secrettest.RequireNone(t, err.Error(), clientSecret)
	secrettest.RequireNone(t, err.Error(), refreshToken)
}

func TestGuard_ATokenServiceThatRepeatsTheCredentialsDisclosesNone(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		_, password, _ := r.BasicAuth()
		http.Error(w, fmt.Sprint("no account has ", secrettest.Forms(r.Form.Get("refresh_token")), secrettest.Forms(clientSecret), r.Header, password), http.StatusBadRequest)
	}))
	t.Cleanup(tokens.Close)
	_, sink := authenticated(t, userFile(t, tokens.URL))
	_, err := sinktest.Deliver(t, sink(false), sinktest.Deliveries(1, 1))
	requireNoCanary(t, err)
	require.ErrorContains(t, err, "no account has [secret]")
	requireNoCanary(t, sink(false).Check(t.Context()))
	_, err = sinktest.Deliver(t, sink(true), sinktest.Deliveries(1, 1))
	requireNoCanary(t, err)
	require.NotContains(t, err.Error(), "no account has")
	require.NotContains(t, sink(true).Check(t.Context()).Error(), "no account has")
}

func TestGuard_HidesTheCredentialsAndOnDemandAllThatPubSubSays(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}`)
	}))
	t.Cleanup(tokens.Close)
	b, sink := authenticated(t, userFile(t, tokens.URL))
	b.answers(func(*pb.PublishRequest) error {
		return status.Error(codes.ResourceExhausted, "no quota for "+secrettest.Forms(clientSecret)+secrettest.Forms(refreshToken))
	})
	_, err := sinktest.Deliver(t, sink(false), sinktest.Deliveries(1, 1))
	requireNoCanary(t, err)
	require.ErrorContains(t, err, "no quota for [secret]")
	_, err = sinktest.Deliver(t, sink(true), sinktest.Deliveries(1, 1))
	requireNoCanary(t, err)
	require.NotContains(t, err.Error(), "no quota for")
	require.ErrorContains(t, err, "ResourceExhausted")
	require.Equal(t, "unreached", sinktest.Class(err))
}
