package tcptest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
)

// Link puts a network that the test can break in front of an address. It ends with the test.
func Link(t testing.TB, address string) *link.Link {
	t.Helper()
	l, err := link.Listen(address)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}
