package operator_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

func TestDoctor_WarnsOfEachTableThatACrashEmpties(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := granted(t, pool, "w", operator.DutyDeliver)
	tables := []string{"cursor", "cursor_event", "cursor_past", "cursor_pruned", "dead_letter", "ordered_dispatcher_migration"}
	for _, table := range tables {
		exec(t, pool, fmt.Sprintf("ALTER TABLE dispatch.%s SET UNLOGGED", table))
	}
	found, err := operator.New(s).Doctor(t.Context(), operator.DutyDeliver)
	require.NoError(t, err)
	require.True(t, found.Usable)
	require.Len(t, warned(t, s), len(tables))
	for _, table := range tables {
		fix := fmt.Sprintf(`ALTER TABLE "dispatch"."%s" SET LOGGED`, table)
		require.Contains(t, found.Findings, operator.Finding{
			Severity: cursor.Warn,
			Problem:  fmt.Sprintf(`"dispatch"."%s" is unlogged: a crash of the server empties it, and a standby has none of its rows. Positions, epochs or what operators decided are lost with it`, table),
			Fix:      fix,
		})
		exec(t, pool, fix)
	}
	require.Empty(t, warned(t, s))
}
