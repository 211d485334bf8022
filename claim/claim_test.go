package claim_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
)

const limit = 1 << 20

// made makes a store in a directory.
func made(t *testing.T, dir string) claim.Dir {
	t.Helper()
	require.NoError(t, claim.Dir(dir).Create())
	return claim.Dir(dir)
}

func put(t *testing.T, store claim.Store, text string) claim.Reference {
	t.Helper()
	r, err := claim.Put(t.Context(), store, []byte(text))
	require.NoError(t, err)
	return r
}

func TestResolve_ReturnsWhatWasPutAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := made(t, dir)
	r := put(t, store, "payload")
	file := filepath.Join(dir, r.Object[:2], r.Object)
	resolve := func() error {
		_, err := r.Resolve(t.Context(), store, limit)
		return err
	}

	parsed, err := claim.Parse(r.Object, r.JSON())
	require.NoError(t, err)
	require.Equal(t, r, parsed)
	whole, err := parsed.Resolve(t.Context(), store, limit)
	require.NoError(t, err)
	require.Equal(t, "payload", string(whole))
	require.NotEqual(t, r.Object, put(t, store, "payload").Object, "each object has a name of its own")

	_, err = r.Resolve(t.Context(), store, 6)
	require.ErrorIs(t, err, claim.ErrTooLarge)
	for _, changed := range []string{"paylaod", "payloa", "payload+", ""} {
		require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
		require.ErrorIs(t, resolve(), claim.ErrAltered, changed)
	}
	require.NoError(t, os.Remove(file))
	require.ErrorIs(t, resolve(), claim.ErrMissing)
	require.NoError(t, os.Mkdir(file, 0o700))
	require.ErrorIs(t, resolve(), claim.ErrAltered, "a directory is no object")
}

func TestDir_PutOverwritesNothing(t *testing.T) {
	t.Parallel()
	store := made(t, t.TempDir())
	r := put(t, store, "payload")
	require.ErrorIs(t, store.Put(t.Context(), r.Object, []byte("other")), os.ErrExist)
	whole, err := store.Get(t.Context(), r.Object, limit)
	require.NoError(t, err)
	require.Equal(t, "payload", string(whole))
}

// A directory that is not mounted is an outage, and not a missing object. That is a path that does not exist, or the
// directory below: empty, or with files of its own.
func TestDir_ADirectoryThatIsAwayIsAnOutage(t *testing.T) {
	t.Parallel()
	r := put(t, made(t, t.TempDir()), "payload")
	below := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(below, "00"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(below, "lost+found"), 0o700))
	for _, away := range []string{filepath.Join(t.TempDir(), "away"), t.TempDir(), below} {
		store := claim.Dir(away)
		_, err := r.Resolve(t.Context(), store, limit)
		require.Error(t, err)
		require.False(t, claim.IsAboutObject(err), err)
		require.Error(t, store.Check())
		_, err = claim.Put(t.Context(), store, []byte("payload"))
		require.Error(t, err, "the object would vanish once the directory is mounted")
		require.Error(t, store.List(t.Context(), func(claim.Object) error { return nil }))
		require.Error(t, store.Delete(t.Context(), r.Object))
		_, err = claim.Collect(t.Context(), store, 0, func(context.Context, []string) ([]string, error) { return nil, nil })
		require.Error(t, err)
	}
	_, err := os.Stat(filepath.Join(below, r.Object[:2]))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = claim.Put(t.Context(), claim.Dir(below), []byte("payload"))
	require.ErrorContains(t, err, "mount what belongs there; if there never was a store, make one: mkdir "+filepath.Join(below, "00"))
	_, read := r.Resolve(t.Context(), claim.Dir(below), limit)
	for _, err := range []error{claim.Dir(below).Check(), read, claim.Dir(below).Delete(t.Context(), r.Object)} {
		require.ErrorContains(t, err, "no subdirectory of objects: mount what belongs there")
		require.NotContains(t, err.Error(), "mkdir", "a new store would turn an outage into records that have lost their payload")
	}
}

// A producer in another language makes its subdirectories itself, and each of them is as good as the one that Create makes.
func TestDir_AStoreIsADirectoryWithASubdirectoryOfObjects(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	store := made(t, dir)
	require.NoError(t, store.Create(), "it is there")
	require.NoError(t, store.Check())
	require.NoError(t, os.Remove(filepath.Join(dir, "00")))
	require.Error(t, store.Check())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "8f"), 0o700))
	_, err := put(t, store, "payload").Resolve(t.Context(), store, limit)
	require.NoError(t, err)
}

func TestParse_RefusesReferencesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	r := put(t, made(t, t.TempDir()), "payload")
	for _, object := range []string{"", "../../etc/passwd", "/etc/passwd", "ab/../../x", strings.ToUpper(r.Object) + "A", r.Object + "/x", r.Object + "\n", r.Object[:31]} {
		hostile := r
		hostile.Object = object
		_, err := claim.Parse(object, hostile.JSON())
		require.ErrorIs(t, err, claim.ErrReference, object)
		_, err = claim.Dir(t.TempDir()).Get(t.Context(), object, limit)
		require.ErrorIs(t, err, claim.ErrReference, object)
	}
	for _, payload := range []string{"", "{}", "[1]", `"` + r.Object + `"`, strings.Replace(string(r.JSON()), `"bytes":7`, `"bytes":-7`, 1)} {
		_, err := claim.Parse(r.Object, []byte(payload))
		require.ErrorIs(t, err, claim.ErrReference, payload)
	}
	_, err := claim.Parse(strings.Repeat("0", 32), r.JSON())
	require.ErrorIs(t, err, claim.ErrReference, "header and payload differ")
}

// A link in the directory leads nowhere outside of it.
func TestDir_FollowsNoLinkToTheOutside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	store := made(t, dir)
	r := put(t, store, "payload")
	secret := filepath.Join(outside, r.Object)
	require.NoError(t, os.WriteFile(secret, []byte("payload"), 0o600))
	shard := filepath.Join(dir, r.Object[:2])
	require.NoError(t, os.RemoveAll(shard))

	require.NoError(t, os.Symlink(outside, shard))
	_, err := store.Get(t.Context(), r.Object, limit)
	require.ErrorIs(t, err, claim.ErrAltered, "to wait would not help")
	require.Error(t, store.Put(t.Context(), r.Object[:2]+strings.Repeat("0", 30), nil))
	require.Error(t, store.Delete(t.Context(), r.Object))
	require.FileExists(t, secret)

	require.NoError(t, os.Remove(shard))
	require.NoError(t, os.Mkdir(shard, 0o700))
	require.NoError(t, os.Symlink(secret, filepath.Join(shard, r.Object)))
	_, err = store.Get(t.Context(), r.Object, limit)
	require.ErrorIs(t, err, claim.ErrAltered)
}

func TestCollect_RemovesWhatIsOldAndNotReferredTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := made(t, dir)
	old, kept, young := put(t, store, "old"), put(t, store, "kept"), put(t, store, "young")
	stranger := filepath.Join(dir, "README")
	require.NoError(t, os.WriteFile(stranger, nil, 0o600))
	for _, file := range []string{filepath.Join(dir, old.Object[:2], old.Object), filepath.Join(dir, kept.Object[:2], kept.Object), stranger} {
		past := time.Now().Add(-2 * time.Hour)
		require.NoError(t, os.Chtimes(file, past, past))
	}
	var asked []string
	referred := func(_ context.Context, names []string) ([]string, error) {
		asked = append(asked, names...)
		return []string{kept.Object}, nil
	}
	removed, err := claim.Collect(t.Context(), store, time.Hour, referred)
	require.NoError(t, err)
	require.Equal(t, claim.Removed{Objects: 1, Bytes: int64(len("old"))}, removed)
	require.ElementsMatch(t, []string{old.Object, kept.Object}, asked)
	_, err = old.Resolve(t.Context(), store, limit)
	require.ErrorIs(t, err, claim.ErrMissing)
	for _, r := range []claim.Reference{kept, young} {
		_, err = r.Resolve(t.Context(), store, limit)
		require.NoError(t, err)
	}
	require.FileExists(t, stranger)

	_, err = claim.Collect(t.Context(), store, time.Hour, func(context.Context, []string) ([]string, error) { return nil, errors.New("the database is away") })
	require.ErrorContains(t, err, "the database is away")
	_, err = kept.Resolve(t.Context(), store, limit)
	require.NoError(t, err, "nothing is removed unless the rows are known")
}
