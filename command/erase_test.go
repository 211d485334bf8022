package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

func TestErase_ReadsTheKeyFromAFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"ann": "ann", "ann\n": "ann", "ann\r\n": "ann", " ann \n\n": " ann \n", "-": "-", "a\nb\n": "a\nb"} {
		path := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, c := range []eraseCommand{{KeyFile: path}, {KeyFile: "-"}, {Key: want}} {
			key, err := c.key(strings.NewReader(text))
			require.NoError(t, err)
			require.Equal(t, want, key)
		}
	}
	for want, c := range map[string]eraseCommand{
		"no such file or directory":        {KeyFile: filepath.Join(t.TempDir(), "none")},
		"there is none in --key-file":      {KeyFile: "-"},
		"cannot both be standard input":    {KeyFile: "-", file: file{source{Config: "-"}}},
		"it is neither a file nor a pipe;": {KeyFile: t.TempDir()},
	} {
		_, err := c.key(strings.NewReader("\n"))
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*daemon.UsageError))
	}
}
