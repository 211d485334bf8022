package retention_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// A program that uses the library opens the store itself.
// A pass that was killed has left a file of another table. One that is young may belong to a pass.
func TestDirectory_RemovesFilesThatWereNotFinished(t *testing.T) {
	t.Parallel()
	d := retention.Directory(t.TempDir())
	for name, age := range map[string]time.Duration{".writing-1": 25 * time.Hour, ".writing-2": time.Hour, "a": 25 * time.Hour} {
		require.NoError(t, os.WriteFile(filepath.Join(string(d), name), nil, 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(string(d), name), then, then))
	}
	require.NoError(t, d.Put(t.Context(), "b", []byte("content")))
	names, err := d.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{".writing-2", "a", "b"}, names)
}

func TestPass_AURLNeedsAShelf(t *testing.T) {
	t.Parallel()
	for directory, want := range map[string]string{
		"s3://bucket": "directory s3://bucket is the URL of an object store: open it, and give it as Config.Shelf",
		"archive":     "directory archive is not an absolute path, nor the URL of an object store",
	} {
		_, err := retention.Pass(t.Context(), retention.Config{Rule: retention.Rule{Keep: time.Hour, Mode: retention.ModeFiles, Directory: directory}})
		require.EqualError(t, err, want)
	}
}
