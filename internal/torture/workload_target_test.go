package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
)

// What goes to another database goes there through the link of its process, and as a role of its own.
func TestConfiguration_ATargetHasItsLinkAndItsRole(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/url"
	require.NoError(t, os.WriteFile(file, []byte("postgres://127.0.0.1/x"), 0o600))
	text := configuration(slot{name: "A"}, file, func(process string) string { return process + ".example:1" })
	_, err := daemon.Parse("A.yaml", []byte(text), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	require.NotEmpty(t, targeted())
	for _, p := range targeted() {
		require.Contains(t, text, `url: "postgres://ledger:ledger@`+p.Name+`.example:1/target?sslmode=disable"`)
		require.True(t, p.Letters, "what the target refuses is put aside")
	}
}
