package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What goes to another database goes there through the link of its process, and as a role of its own.
func TestConfiguration_ATargetHasItsLinkAndItsRole(t *testing.T) {
	t.Parallel()
	text := requireAccepted(t, func(urlFile string) string {
		return configuration(slot{name: "A"}, urlFile, func(process string) string { return process + ".example:1" })
	})
	require.NotEmpty(t, targeted())
	for _, p := range targeted() {
		require.Contains(t, text, `url: "postgres://ledger:ledger@`+p.Name+`.example:1/target?sslmode=disable"`)
		require.True(t, p.Letters, "what the target refuses is put aside")
	}
}
