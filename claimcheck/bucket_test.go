package claimcheck_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/claimcheck"
)

const limit = 1 << 20

func TestBucket_ReturnsWhatWasPutAndOverwritesNothing(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { require.NoError(t, bucket.Close()) })
	store := claimcheck.New(bucket)
	r, err := claim.Put(t.Context(), store, []byte("payload"))
	require.NoError(t, err)
	require.Error(t, store.Put(t.Context(), r.Object, []byte("other")))
	whole, err := r.Resolve(t.Context(), store, limit)
	require.NoError(t, err)
	require.Equal(t, "payload", string(whole))
	_, err = store.Get(t.Context(), r.Object, 6)
	require.ErrorIs(t, err, claim.ErrTooLarge)

	require.NoError(t, bucket.WriteAll(t.Context(), r.Object, []byte("paylaod"), nil))
	_, err = r.Resolve(t.Context(), store, limit)
	require.ErrorIs(t, err, claim.ErrAltered)
	require.NoError(t, store.Delete(t.Context(), r.Object))
	require.NoError(t, store.Delete(t.Context(), r.Object))
	_, err = r.Resolve(t.Context(), store, limit)
	require.ErrorIs(t, err, claim.ErrMissing)
}

func TestBucket_OneThatIsAwayIsAnOutage(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	store := claimcheck.New(bucket)
	r, err := claim.Put(t.Context(), store, []byte("payload"))
	require.NoError(t, err)
	require.NoError(t, bucket.Close())
	_, err = r.Resolve(t.Context(), store, limit)
	require.Error(t, err)
	require.False(t, claim.IsAboutObject(err), err)
}

func TestBucket_IsCollected(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { require.NoError(t, bucket.Close()) })
	store := claimcheck.New(bucket)
	orphan, err := claim.Put(t.Context(), store, []byte("orphan"))
	require.NoError(t, err)
	kept, err := claim.Put(t.Context(), store, []byte("kept"))
	require.NoError(t, err)
	referred := func(context.Context, []string) ([]string, error) { return []string{kept.Object}, nil }
	removed, err := claim.Collect(t.Context(), store, time.Hour, referred)
	require.NoError(t, err)
	require.Zero(t, removed, "not before the time")
	removed, err = claim.Collect(t.Context(), store, -time.Minute, referred)
	require.NoError(t, err)
	require.Equal(t, claim.Removed{Objects: 1, Bytes: int64(len("orphan"))}, removed)
	_, err = orphan.Resolve(t.Context(), store, limit)
	require.ErrorIs(t, err, claim.ErrMissing)
	_, err = kept.Resolve(t.Context(), store, limit)
	require.NoError(t, err)
}
