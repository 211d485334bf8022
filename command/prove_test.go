package command

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/prove"
)

// Who made a table chose its name.
func TestProve_TheNameOfATableIsNoOrderToTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	(&proveCommand{For: time.Minute}).began(&out, prove.Report{Table: "public.\"a\x1b[31m\u202eb\""})
	require.Contains(t, out.String(), "measuring public.\"a")
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\u202e")
}
