package main

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	embedded "github.com/fergusstrange/embedded-postgres"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
)

func TestReleases_AreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[int]string{
		14: string(embedded.V14),
		15: string(embedded.V15),
		16: string(embedded.V16),
		17: string(embedded.V17),
		18: string(embedded.V18),
	}, pglocal.Releases())
}

// A port may be taken between the choice of it and the library's look at it: then another one is chosen.
func TestUnpack_KnowsAPortThatWasTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	err = unpackOn(taken.Addr().(*net.TCPAddr).Port, dir, filepath.Join(dir, "unpacked"), embedded.V18)
	require.True(t, isPortTaken(err), err)
	require.False(t, isPortTaken(errors.New("no network")))
	require.False(t, isPortTaken(nil))
}
