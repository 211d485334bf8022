package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireAccepted has the shipped program check a configuration, whose name of the file of the URL is filled in by text.
func requireAccepted(t *testing.T, text func(urlFile string) string) string {
	t.Helper()
	url := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(url, []byte("postgres://127.0.0.1/x"), 0o600))
	configuration := text(url)
	file := filepath.Join(t.TempDir(), "dispatcher.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configuration), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "run", shipped, "check", "-c", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return configuration
}
