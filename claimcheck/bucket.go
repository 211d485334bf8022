package claimcheck

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
)

// Bucket is a claim.Store.
type Bucket struct{ bucket *blob.Bucket }

var _ claim.Store = Bucket{}

// New returns the store in a bucket. The caller closes the bucket, after the last use of the store.
func New(bucket *blob.Bucket) Bucket { return Bucket{bucket} }

// Put writes an object, unless there is one of that name.
func (b Bucket) Put(ctx context.Context, name string, content []byte) error {
	return b.bucket.WriteAll(ctx, name, content, &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: true})
}

// Get reads an object.
func (b Bucket) Get(ctx context.Context, name string, limit int) ([]byte, error) {
	reader, err := b.bucket.NewRangeReader(ctx, name, 0, int64(limit)+1, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, b.missing(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if reader.Size() > int64(limit) {
		return nil, claim.ErrTooLarge
	}
	return io.ReadAll(reader)
}

// missing distinguishes an object that is not there from a bucket that is not there.
func (b Bucket) missing(ctx context.Context) error {
	switch there, err := b.bucket.IsAccessible(ctx); {
	case err != nil:
		return err
	case !there:
		return errors.New("the bucket does not exist, or may not be read")
	default:
		return claim.ErrMissing
	}
}

// List lists the objects.
func (b Bucket) List(ctx context.Context, each func(claim.Object) error) error {
	for objects := b.bucket.List(nil); ; {
		o, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the bucket: %w", err)
		}
		if err := each(claim.Object{Name: o.Key, At: o.ModTime, Bytes: o.Size}); err != nil {
			return err
		}
	}
}

// Delete removes an object.
func (b Bucket) Delete(ctx context.Context, name string) error {
	if err := b.bucket.Delete(ctx, name); gcerrors.Code(err) != gcerrors.NotFound {
		return err
	}
	return nil
}
