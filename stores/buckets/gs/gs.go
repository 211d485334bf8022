// Package gs opens buckets of Google Cloud Storage as object stores of the daemon.
package gs

import (
	"context"
	"net/url"
	"os"

	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"

	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets"
)

// Spec describes the kind to the daemon. Credentials are Google's application default credentials: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, or the machine's account.
func Spec() stores.Spec {
	return buckets.Kind{
		Scheme:     gcsblob.Scheme,
		Example:    "gs://bucket",
		Parameters: []string{"anonymous", "universe_domain"},
		Opener:     opener,
	}.Spec()
}

// opener is in place of the driver's own, which keeps its first failure for ever and prints to standard output.
func opener(ctx context.Context, u *url.URL) (blob.BucketURLOpener, error) {
	if u.Query().Has("anonymous") || os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return &gcsblob.URLOpener{Client: gcp.NewAnonymousHTTPClient(gcp.DefaultTransport())}, nil
	}
	ctx = context.WithoutCancel(ctx) // the credentials keep it
	find := gcp.DefaultCredentials
	if universe := u.Query().Get("universe_domain"); universe != "" {
		find = func(ctx context.Context) (*google.Credentials, error) {
			return gcp.DefaultCredentialsWithParams(ctx, google.CredentialsParams{UniverseDomain: universe})
		}
	}
	credentials, err := find(ctx)
	if err != nil {
		return nil, err
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), credentials.TokenSource)
	if err != nil {
		return nil, err
	}
	return &gcsblob.URLOpener{Client: client}, nil
}
