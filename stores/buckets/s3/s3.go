// Package s3 opens buckets of Amazon S3, and of servers that speak its protocol, as object stores of the daemon.
package s3

import (
	"context"
	"errors"
	"net/url"

	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets"
)

// Spec describes the kind to the daemon. Credentials come from where the client of AWS finds them: the environment
// (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), its files, or the machine's role.
func Spec() stores.Spec {
	return buckets.Kind{
		Scheme:  s3blob.Scheme,
		Example: "s3://bucket?region=eu-central-1",
		Parameters: []string{
			"region", "endpoint", "profile", "role", "use_path_style", "s3ForcePathStyle", "hostname_immutable", "disable_https", "dualstack", "fips",
			"accelerate", "anonymous", "ssetype", "kmskeyid", "request_checksum_calculation", "response_checksum_validation",
		},
		Check: check,
		Opener: func(context.Context, *url.URL) (blob.BucketURLOpener, error) {
			return &s3blob.URLOpener{}, nil
		},
	}.Spec()
}

// check looks at the address of another server. Its login would not be used, and would be printed.
func check(u *url.URL) error {
	endpoint := u.Query().Get("endpoint")
	if endpoint == "" {
		return nil
	}
	at, err := url.Parse(endpoint)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		return errors.New("its endpoint is not an address: write endpoint=https://host:port")
	case at.User != nil:
		return errors.New("its endpoint has a login: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment instead")
	default:
		return nil
	}
}
