package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const replaceable = "others can put another file in the place of"

// foreignFiles are a configuration and a file that it refers to, each in a directory of
// its own, and a link to the configuration.
func foreignFiles(t testing.TB) (config, secret, link string) {
	t.Helper()
	dir := t.TempDir()
	config, secret, link = filepath.Join(dir, "a", "od.yaml"), filepath.Join(dir, "b", "secret"), filepath.Join(dir, "c", "link.yaml")
	for _, path := range []string{config, secret, link} {
		require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	}
	text := "schema: od\nprocesses:\n  a: {source: {table: public.bookings}, start: beginning, sink: {webhook: {url: 'http://127.0.0.1:1', secret: '${file:" + secret + "}'}}}\n"
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(secret, []byte("a-secret-of-thirty-two-bytes-or-more"), 0o600))
	require.NoError(t, os.Symlink(config, link))
	return config, secret, link
}

// exposed is what check and run say of a configuration and its files.
func exposed(t testing.TB, path string) string {
	t.Helper()
	loaded, err := daemon.Load(path, nil, environment(nil), kinds)
	require.NoError(t, err)
	return strings.Join(loaded.ExposedFiles(), "\n")
}

func TestExposedFiles_NamesADirectoryWhereOthersCanReplaceAFile(t *testing.T) {
	t.Parallel()
	config, secret, link := foreignFiles(t)
	require.Empty(t, exposed(t, link))
	for _, path := range []string{config, secret, link} {
		dir := filepath.Dir(path)
		require.NoError(t, os.Chmod(dir, 0o777))
		require.Contains(t, exposed(t, link), "they can write the directory "+dir+" (mode 0777)")
		require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
		require.Empty(t, exposed(t, link))
	}
	database(t)
	require.NoError(t, os.Chmod(filepath.Dir(config), 0o777))
	loaded, err := daemon.Load(config, nil, environment(nil), kinds)
	require.NoError(t, err)
	loaded.Database = pgtest.URL(t)
	require.True(t, slices.ContainsFunc(doctor(t, loaded), func(f daemon.Finding) bool { return strings.Contains(f.Problem, replaceable) }))
}

func TestExposedFiles_NamesTheAccountThatOwnsAFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	config, secret, link := foreignFiles(t)
	for _, path := range []string{config, secret, link} {
		require.NoError(t, os.Lchown(path, 4711, 0))
		require.Contains(t, exposed(t, link), "the file "+path+" belongs to another account (user id 4711)")
		require.NoError(t, os.Lchown(path, 0, 0))
		require.Empty(t, exposed(t, link))
	}
}
