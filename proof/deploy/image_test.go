package deploy

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

// dockerfile returns the stages, as BuildKit reads them.
func dockerfile(t *testing.T) []instructions.Stage {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(read(t, "Dockerfile")))
	require.NoError(t, err)
	require.Empty(t, parsed.Warnings)
	stages, _, err := instructions.Parse(parsed.AST, nil)
	require.NoError(t, err)
	return stages
}

// first returns the first instruction of a kind in a stage.
func first[T instructions.Command](t *testing.T, stage instructions.Stage) T {
	t.Helper()
	for _, command := range stage.Commands {
		if c, ok := command.(T); ok {
			return c
		}
	}
	require.Fail(t, "the stage lacks an instruction", "%T", *new(T))
	return *new(T)
}

func TestDockerfile_MakesAnImageWithoutRootAndWithoutAShell(t *testing.T) {
	t.Parallel()
	stages := dockerfile(t)
	require.Len(t, stages, 2)
	require.Equal(t, "$BUILDPLATFORM", stages[0].Platform, "the compiler must not be emulated")
	image := stages[1]
	require.Equal(t, "gcr.io/distroless/static-debian12:nonroot", image.BaseName)
	require.Equal(t, "65532:65532", first[*instructions.UserCommand](t, image).User, "Kubernetes checks runAsNonRoot by the number")
	require.Equal(t, "build", first[*instructions.CopyCommand](t, image).From)
	entry := first[*instructions.EntrypointCommand](t, image)
	require.False(t, entry.PrependShell, "there is no shell")
	require.Equal(t, []string{"/usr/bin/ordered-dispatcher"}, []string(entry.CmdLine))
	require.False(t, first[*instructions.CmdCommand](t, image).PrependShell)
	for _, command := range image.Commands {
		require.NotEqual(t, "RUN", command.Name())
		require.NotEqual(t, "VOLUME", command.Name(), "the root can be read-only")
	}
}

// The RUN line, in a copy of what docker build would send. The cache mounts of BuildKit are Go's own here.
func TestDockerfile_BuildsTheProgramFromItsContext(t *testing.T) {
	t.Parallel()
	src, out := t.TempDir(), t.TempDir()
	copyContext(t, src)
	run := first[*instructions.RunCommand](t, dockerfile(t)[0])
	line := strings.Join(run.CmdLine, " ")
	require.Contains(t, line, "-o /out/ordered-dispatcher")
	line = strings.ReplaceAll(line, "/out/", out+"/")
	// Without a version, as for docker compose, it has that of the source.
	for given, want := range map[string]string{"v9.8.7": "v9.8.7", "": sourceVersion(t)} {
		env := []string{"VERSION=" + given, "TARGETOS=" + runtime.GOOS, "TARGETARCH=" + runtime.GOARCH, "GOWORK=", "GOFLAGS="}
		_, err := in(src, env, "sh", "-c", line)
		require.NoError(t, err)
		version, err := in(out, nil, filepath.Join(out, "ordered-dispatcher"), "--version")
		require.NoError(t, err)
		require.Equal(t, want+"\n", version)
	}
}

// copyContext copies what .dockerignore leaves.
func copyContext(t *testing.T, to string) {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(read(t, ".dockerignore")))
	require.NoError(t, err)
	ignored, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	for _, name := range tracked(t) {
		skip, err := ignored.MatchesOrParentMatches(name)
		require.NoError(t, err)
		if skip {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o644))
	}
	require.NoDirExists(t, filepath.Join(to, ".git"))
}
