package buckets

import (
	"context"
	"errors"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// Files returns the shelf in a bucket. The caller closes the bucket, after the last use of the shelf.
func Files(bucket *blob.Bucket) retention.Shelf { return files{bucket} }

type files struct{ bucket *blob.Bucket }

// Put replaces a file at once: no reader sees a part of it.
func (f files) Put(ctx context.Context, name string, content []byte) error {
	return worded(f.bucket.WriteAll(ctx, name, content, &blob.WriterOptions{ContentType: "application/gzip"}))
}

// List asks for the names with this beginning alone.
func (f files) List(ctx context.Context, prefix string) (names []string, err error) {
	for found := f.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := found.Next(ctx)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, worded(err)
		}
		names = append(names, o.Key)
	}
}

// Remove removes a file.
func (f files) Remove(ctx context.Context, name string) error {
	if err := f.bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return worded(err)
	}
	return nil
}
