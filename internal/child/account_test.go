//go:build unix

package child

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandFault_AProgramIsLookedForInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "x"), []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, Program{Command: []string{"bin/x"}, Dir: dir}.CommandFault())
	require.Error(t, Program{Command: []string{"bin/y"}, Dir: dir}.CommandFault())
	require.Error(t, Program{Command: []string{"bin/x"}}.CommandFault())
}

func TestAccountOf_OnlyRootCanChangeTheUser(t *testing.T) {
	t.Parallel()
	_, err := AccountOf("nobody", 1000)
	require.ErrorContains(t, err, `user "nobody" needs ordered-dispatcher to run as root, and it runs as uid 1000`)
	a, err := AccountOf("", 1000)
	require.NoError(t, err)
	require.Nil(t, a)
	a, err = AccountOf("1234:5678", 0)
	require.NoError(t, err)
	require.Equal(t, &Account{uid: 1234, gid: 5678}, a)
	a, err = AccountOf("nobody", 0)
	require.NoError(t, err)
	require.NotZero(t, a.uid)
	require.Equal(t, "nobody", a.name)
	_, err = AccountOf("no-such-account", 0)
	require.ErrorContains(t, err, "is not an account of this machine: make the account, or write uid:gid")
}
