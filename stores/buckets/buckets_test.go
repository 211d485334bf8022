package buckets_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/azblob"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/file"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/gs"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/s3"
)

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func TestSpec_ItsExampleIsSound(t *testing.T) {
	t.Parallel()
	for _, spec := range []stores.Spec{s3.Spec(), gs.Spec(), azblob.Spec(), file.Spec()} {
		u := parsed(t, spec.Example)
		require.Equal(t, spec.Scheme, u.Scheme)
		require.NoError(t, spec.Check(u))
		u.RawQuery = "nosuch=1"
		require.ErrorContains(t, spec.Check(u), "the parameter nosuch is not known here: the parameters of "+spec.Scheme+":// are ")
	}
	require.ErrorContains(t, gs.Spec().Check(parsed(t, "gs://b?prefix=a&prefix=b")), "the parameter prefix is there several times")
	require.ErrorContains(t, gs.Spec().Check(parsed(t, "gs://b?prefix=%zz")), "its parameters cannot be read")
}

func TestFiles_ReplacesListsAndRemoves(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	files := buckets.Files(bucket)
	const name = "public.bookings,at.int%3A2026-01-01T00%3A01%3A00.000000Z%2F1,x.jsonl.gz"
	require.NoError(t, files.Put(t.Context(), name, []byte("old")))
	require.NoError(t, files.Put(t.Context(), name, []byte("new")))
	require.NoError(t, files.Put(t.Context(), "other", nil))
	content, err := bucket.ReadAll(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, "new", string(content))
	names, err := files.List(t.Context(), "public.bookings,")
	require.NoError(t, err)
	require.Equal(t, []string{name}, names)
	require.NoError(t, files.Remove(t.Context(), name))
	require.NoError(t, files.Remove(t.Context(), name))

	require.NoError(t, bucket.Close())
	require.Error(t, files.Put(t.Context(), name, nil))
	_, err = files.List(t.Context(), "")
	require.Error(t, err)
	require.Error(t, files.Remove(t.Context(), name))
}

// failing is an opener that fails as a client does.
type failing struct{ err error }

func (f failing) OpenBucketURL(context.Context, *url.URL) (*blob.Bucket, error) { return nil, f.err }

// Azure's client quotes the URL of a request, with the token that was given to it.
func TestSpec_AnErrorIsOneLineWithoutATokenOfAURL(t *testing.T) {
	t.Parallel()
	quoted := errors.New("Get \"https://a.blob.core.windows.net/c/x?se=2026&sig=CANARY%3D\": dial tcp: refused\n" +
		"--------------------------------------------------------------------------------\nRESPONSE 403: see https://h/c?sig=CANARY and\n  more")
	spec := buckets.Kind{Scheme: "x", Opener: func(context.Context, *url.URL) (blob.BucketURLOpener, error) { return failing{quoted}, nil }}.Spec()
	_, err := spec.Open(t.Context(), parsed(t, "x://b"))
	require.EqualError(t, err, `Get "https://a.blob.core.windows.net/c/x": dial tcp: refused RESPONSE 403: see https://h/c and more`)
	require.ErrorIs(t, err, quoted)
}

func TestFile_HasTheObjectsOfFileblobAndTheFilesOfADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	producer, err := blob.OpenBucket(t.Context(), "file://"+dir+"?no_tmp_dir=true")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	written := buckets.Opened(producer)
	r, err := claim.Put(t.Context(), written.Objects, []byte("payload"))
	require.NoError(t, err)

	opened, err := file.Spec().Open(t.Context(), parsed(t, "file://"+dir+"?no_tmp_dir=true"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	require.NoError(t, opened.Reach(t.Context()))
	whole, err := r.Resolve(t.Context(), opened.Objects, 100)
	require.NoError(t, err)
	require.Equal(t, "payload", string(whole))
	require.NoError(t, opened.Objects.Delete(t.Context(), r.Object))
	_, err = r.Resolve(t.Context(), opened.Objects, 100)
	require.ErrorIs(t, err, claim.ErrMissing)

	require.NoError(t, opened.Files.Put(t.Context(), "a", []byte("x")))
	require.FileExists(t, dir+"/a")
	require.NoFileExists(t, dir+"/a.attrs")

	_, err = file.Spec().Open(t.Context(), parsed(t, "file://"+dir+"/away?create_dir=1"))
	require.Error(t, err, "one that is not mounted is an outage")
	require.NoDirExists(t, dir+"/away")
}

// Who writes into the directory neither shows the dispatcher other files, nor makes it wait.
func TestFile_FollowsNoLinkAndWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	opened, err := file.Spec().Open(t.Context(), parsed(t, "file://"+dir))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	kept, err := claim.Put(t.Context(), opened.Objects, []byte("payload"))
	require.NoError(t, err)
	link, pipe := strings.Repeat("e", 32), strings.Repeat("f", 32)
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, link)))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, pipe), 0o600))
	attributes := filepath.Join(dir, kept.Object+".attrs")
	require.NoError(t, os.RemoveAll(attributes))
	require.NoError(t, syscall.Mkfifo(attributes, 0o600))

	for _, name := range []string{link, pipe} {
		_, err = opened.Objects.Get(t.Context(), name, 100)
		require.ErrorIs(t, err, claim.ErrAltered, name)
	}
	whole, err := kept.Resolve(t.Context(), opened.Objects, 100)
	require.NoError(t, err)
	require.Equal(t, "payload", string(whole))
	_, err = opened.Objects.Get(t.Context(), kept.Object, 6)
	require.ErrorIs(t, err, claim.ErrTooLarge)
	require.NoError(t, opened.Reach(t.Context()))
	var listed []string
	require.NoError(t, opened.Objects.List(t.Context(), func(o claim.Object) error {
		listed = append(listed, o.Name)
		require.EqualValues(t, len("payload"), o.Bytes)
		return nil
	}))
	require.Equal(t, []string{kept.Object}, listed)

	require.NoError(t, opened.Objects.Delete(t.Context(), link))
	require.FileExists(t, outside)
	require.NoError(t, os.RemoveAll(dir))
	_, err = kept.Resolve(t.Context(), opened.Objects, 100)
	require.False(t, err == nil || claim.IsAboutObject(err), "a directory that is away is an outage: %v", err)
	require.Error(t, opened.Objects.List(t.Context(), nil))
	require.Error(t, opened.Reach(t.Context()))
}
