package command

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion_IsTrueHoweverTheProgramWasBuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ module, released, commit, want string }{
		"go install":                 {module: "v1.2.3", want: "v1.2.3"},
		"go build in a clone":        {module: "v1.2.4-0.20261128083000-0123abc", want: "v1.2.4-0.20261128083000-0123abc"},
		"a release":                  {module: "(devel)", released: "v1.2.3", want: "v1.2.3"},
		"a test binary":              {released: "v1.2.3", want: "v1.2.3"},
		"make build, without stamps": {module: "(devel)", commit: "0123abc-dirty", want: sourceVersion + "+0123abc-dirty"},
		"an archive of the source":   {module: "(devel)", want: sourceVersion},
		"no marks at all":            {want: sourceVersion},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}}
		require.Equal(t, c.want, versionOf(info, c.released, c.commit), name)
	}
}
