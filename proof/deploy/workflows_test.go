package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var pinned = regexp.MustCompile(`^\s*- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// A tag of an action can move, a commit cannot.
func TestWorkflows_PinTheirActionsByCommit(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Steps []struct{ Uses, Run string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &workflow))
		require.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions, "a job asks for more")
		var uses int
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.Contains(line, "uses:") {
				require.Regexp(t, pinned, line)
				uses++
			}
		}
		require.NotZero(t, uses)
		for name, job := range workflow.Jobs {
			require.NotEmpty(t, job.Steps, name)
		}
	}
}

// One pin for each action, so that one look finds an old one.
func TestWorkflows_PinAnActionOnce(t *testing.T) {
	t.Parallel()
	pins := map[string]string{}
	for _, name := range []string{"ci.yml", "release.yml"} {
		for line := range strings.Lines(read(t, ".github/workflows/"+name)) {
			_, use, ok := strings.Cut(strings.TrimSpace(line), "- uses: ")
			if !ok {
				continue
			}
			action, pin, _ := strings.Cut(use, "@")
			if before, known := pins[action]; known {
				require.Equal(t, before, pin, action)
			}
			pins[action] = pin
		}
	}
}
