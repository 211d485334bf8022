package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// The other tests run the built program. This one links it in besides, so that
// go test does not take their results from its cache when the program changed.
func TestExecute_Help(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	exit := -1
	execute([]string{"migrate", "down", "--help"}, system{stdout: &stdout, stderr: &stderr, exit: func(code int) { exit = code }})
	require.Zero(t, exit)
	require.Contains(t, stdout.String(), "--yes")
}
