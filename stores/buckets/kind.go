package buckets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/ordered-dispatcher/ordered-dispatcher/claimcheck"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
)

// Kind is one kind of bucket.
type Kind struct {
	Scheme  string
	Example string
	// Parameters are the known ones, besides prefix.
	Parameters []string
	// Check looks for more faults of a URL; nil: there are none.
	Check func(u *url.URL) error
	// Opener returns what opens a URL of the scheme, with the present credentials.
	Opener func(ctx context.Context, u *url.URL) (blob.BucketURLOpener, error)
}

// Spec returns the kind for a daemon.
func (k Kind) Spec() stores.Spec {
	return stores.Spec{Scheme: k.Scheme, Example: k.Example, Check: k.check, Open: k.open}
}

// prefix is the parameter that gocloud.dev/blob knows for each kind.
const prefix = "prefix"

func (k Kind) check(u *url.URL) error {
	switch {
	case u.Host == "":
		return fmt.Errorf("it names no bucket: write %s", k.Example)
	case u.Path != "" && u.Path != "/":
		return fmt.Errorf("a path after the name of the bucket has no meaning: write it as the parameter prefix, as in %s://%s?prefix=%s/",
			k.Scheme, u.Host, strings.Trim(u.Path, "/"))
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("its parameters cannot be read: write them as in " + k.Example)
	}
	known := append([]string{prefix}, k.Parameters...)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the parameter %s is not known here: the parameters of %s:// are %s", name, k.Scheme, strings.Join(known, ", "))
		}
		if len(query[name]) > 1 {
			return fmt.Errorf("the parameter %s is there several times", name)
		}
	}
	if k.Check != nil {
		return k.Check(u)
	}
	return nil
}

func (k Kind) open(ctx context.Context, u *url.URL) (stores.Opened, error) {
	opener, err := k.Opener(ctx, u)
	if err != nil {
		return stores.Opened{}, worded(err)
	}
	mux := new(blob.URLMux) // it reads the parameter prefix
	mux.RegisterBucket(k.Scheme, opener)
	bucket, err := mux.OpenBucketURL(ctx, u)
	if err != nil {
		return stores.Opened{}, worded(err)
	}
	return Opened(bucket), nil
}

// Opened returns a bucket as a store of the daemon.
func Opened(bucket *blob.Bucket) stores.Opened {
	return stores.Opened{
		Objects: objects{claimcheck.New(bucket)},
		Files:   Files(bucket),
		Reach:   func(ctx context.Context) error { return reach(ctx, bucket) },
		Close:   bucket.Close,
	}
}

func reach(ctx context.Context, bucket *blob.Bucket) error {
	_, _, err := bucket.ListPage(ctx, blob.FirstPageToken, 1, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("the bucket cannot be listed, or does not exist: %w", worded(err))
	}
	return worded(err)
}
