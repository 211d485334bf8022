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

// Get reads an object. It asks for no range: S3 refuses each range of an object that is empty.
func (b Bucket) Get(ctx context.Context, name string, limit int) ([]byte, error) {
	reader, err := b.bucket.NewReader(ctx, name, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, b.missing(ctx, name, err)
	}
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if reader.Size() > int64(limit) {
		return nil, claim.ErrTooLarge
	}
	return io.ReadAll(io.LimitReader(reader, int64(limit)+1))
}

// missing returns ErrMissing if the list of the bucket does not have the object. A driver's word alone is not enough:
// it also takes an absent bucket for it, an object in cold storage, and, by the text of an error, some outages.
func (b Bucket) missing(ctx context.Context, name string, said error) error {
	first, err := b.bucket.List(&blob.ListOptions{Prefix: name}).Next(ctx)
	switch {
	case errors.Is(err, io.EOF), err == nil && first.Key != name: // the list is in the order of names
		return claim.ErrMissing
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fmt.Errorf("the bucket cannot be listed, or does not exist: %w", err)
	case err != nil:
		return err
	default:
		return fmt.Errorf("the bucket lists the object, and does not return it: %w", said)
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
