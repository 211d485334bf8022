package command

import (
	"fmt"
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

// With --table there is no file, so the next step must not be one of its keys.
func TestSubject_ARefusalProposesFlagsWhereThereIsNoFile(t *testing.T) {
	t.Parallel()
	refusal := fmt.Errorf("%w by created_at, id: table public.a has no column id; fix: name it in source.columns.id: public.a has b; "+
		"table public.a has no column created_at; fix: name a timestamptz of public.a in source.columns.created_at: b; or set source.order: id, since …; fix: order by created_at", prove.ErrRefused)
	err := subject{Table: "public.a"}.refused(refusal)
	require.ErrorContains(t, err, "fix: name it with --order COLUMN, or --order TIME,COLUMN: public.a has b")
	require.ErrorContains(t, err, "name a timestamptz of public.a with --order TIME,ID: b; or set --order ID, since")
	require.ErrorContains(t, err, "cannot be read in order by created_at, id: ")
	require.ErrorContains(t, err, "; fix: set --order TIME,ID")
	require.NotContains(t, err.Error(), "source.")
	require.ErrorContains(t, subject{}.refused(refusal), "source.columns.id")
}
