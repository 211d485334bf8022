package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// systemd reads the unit. It may use every setting, and the program is where the unit looks for it.
func TestUnit_IsOneThatSystemdAccepts(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze")
	dir, _ := installed(t)
	for _, name := range []string{"sysinit", "basic", "shutdown", "multi-user", "network-online"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Dir(unit), name+".target"), []byte("[Unit]\n"), 0o644))
	}
	out, err := in(dir, nil, "systemd-analyze", "verify", "--root="+dir, "--man=no", "--generators=no", "/"+unit)
	require.NoError(t, err)
	require.Empty(t, out)
}

var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// 0 means fully enclosed, 10 means no restriction. A worker needs the network, and secrets of its environment.
func TestUnit_IsHardened(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze")
	out, err := in(".", nil, "systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(root, "deploy/systemd/ordered-dispatcher.service"))
	require.NoError(t, err)
	found := exposure.FindStringSubmatch(out)
	require.NotNil(t, found, out)
	level, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	require.LessOrEqual(t, level, 1.5, out)
}
