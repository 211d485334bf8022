package bounded_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

func TestRead_FilesHaveAnEnd(t *testing.T) {
	t.Parallel()
	_, err := bounded.Read("/dev/zero")
	require.ErrorIs(t, err, bounded.ErrKind)
	_, err = bounded.Read(t.TempDir())
	require.ErrorIs(t, err, bounded.ErrKind)

	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	_, err = bounded.Read(large)
	require.ErrorIs(t, err, bounded.ErrTooLarge)
	require.ErrorContains(t, err, "it has more than 1048576 bytes")
}

func TestRead_APipeIsReadAndNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := bounded.ReadWithin(pipe, 10*time.Millisecond)
	require.ErrorIs(t, err, bounded.ErrSilent)

	other := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(other, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(other, []byte("a: x"), 0o600) }()
	text, err := bounded.Read(other)
	require.NoError(t, err)
	require.NoError(t, <-written)
	require.Equal(t, "a: x", string(text))
}

// What is read at each connection is no pipe, and is not waited for.
func TestFile_IsARegularFileAndWaitedForInNoCase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, large, plain := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "plain")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	for path, want := range map[string]error{
		pipe: bounded.ErrNoFile, "/dev/zero": bounded.ErrNoFile, dir: bounded.ErrNoFile, large: bounded.ErrTooLarge, filepath.Join(dir, "none"): fs.ErrNotExist,
	} {
		_, err := bounded.File(path)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, path)
	}
	text, err := bounded.File(plain)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}

func TestIn_ReadsARegularFileAlone(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(outside, []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(at("plain"), []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Symlink(outside, at("link")))
	require.NoError(t, os.Symlink("plain", at("within")))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for name, want := range map[string]error{
		"pipe": bounded.ErrNoFile, "link": bounded.ErrNoFile, "within": bounded.ErrNoFile, ".": bounded.ErrNoFile, "none": fs.ErrNotExist,
	} {
		_, err := bounded.In(root, name, 4)
		require.ErrorIs(t, err, want, name)
	}
	text, err := bounded.In(root, "plain", 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	_, err = bounded.In(root, "plain", 3)
	require.ErrorIs(t, err, bounded.ErrTooLarge)
}
