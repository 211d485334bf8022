package command

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion_IsTrueHoweverTheProgramWasBuilt(t *testing.T) {
	t.Parallel()
	stamped := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abc"}}
	for name, c := range map[string]struct {
		module   string
		settings []debug.BuildSetting
		released string
		want     string
	}{
		"go install":               {module: "v1.2.3", want: "v1.2.3"},
		"go build in a clone":      {module: "v1.2.4-0.20261128083000-0123abc", settings: stamped, want: "v1.2.4-0.20261128083000-0123abc"},
		"a release":                {module: "(devel)", released: "v1.2.3", want: "v1.2.3"},
		"a test binary":            {released: "v1.2.3", want: "v1.2.3"},
		"a commit alone":           {module: "(devel)", settings: stamped, want: "unreleased, commit 0123abc"},
		"an archive of the source": {module: "(devel)", want: "unknown: built from a tree without version control"},
		"no marks at all":          {want: "unknown: built from a tree without version control"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings}
		require.Equal(t, c.want, versionOf(info, c.released), name)
	}
}
