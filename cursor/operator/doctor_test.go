package operator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

func TestDoctor_FindsNothingWhereEverythingIsRight(t *testing.T) {
	t.Parallel()
	found, err := operator.New(store(t, database(t), "w")).Doctor(t.Context(), operator.DutyDeliver, operator.DutyDecide)
	require.NoError(t, err)
	require.True(t, found.Present)
	require.True(t, found.Usable)
	for _, f := range found.Findings {
		require.Equal(t, cursor.Note, f.Severity, "%+v", f)
	}
}

func TestDoctor_NamesWhatIsMissingWithItsFix(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "DROP TABLE dispatch.dead_letter")
	found, err := operator.New(store(t, pool, "w")).Doctor(t.Context(), operator.DutyDeliver)
	require.NoError(t, err)
	require.False(t, found.Present)
	require.False(t, found.Usable)
	require.Contains(t, found.Findings, operator.Finding{
		Severity: cursor.Refuse, Problem: `of the cursor tables these are missing: "dispatch".dead_letter`, Fix: "ordered-dispatcher migrate up -c FILE",
	})
}

// TestDoctor_NamesAFunctionThatASuperuserHasRevoked: the doctor found nothing, and each look of a worker failed.
func TestDoctor_NamesAFunctionThatASuperuserHasRevoked(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := granted(t, pool, "w", operator.DutyDeliver)
	exec(t, pool, "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_control_checkpoint() FROM PUBLIC")
	_, err := s.Observe(t.Context(), "sms")
	require.ErrorContains(t, err, "`ordered-dispatcher doctor` names what else it lacks")
	found, err := operator.New(s).Doctor(t.Context(), operator.DutyDeliver)
	require.NoError(t, err)
	require.False(t, found.Usable)
	require.Len(t, found.Findings, 1)
	require.Contains(t, found.Findings[0].Problem, "lacks EXECUTE on pg_catalog.pg_control_checkpoint()")
	require.Contains(t, found.Findings[0].Fix, "GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_checkpoint() TO ")
	exec(t, pool, found.Findings[0].Fix)
	_, err = s.Observe(t.Context(), "sms")
	require.ErrorIs(t, err, cursor.ErrUnknown)
}

func TestDoctor_NamesTheRightsThatADutyLacks(t *testing.T) {
	t.Parallel()
	pool := database(t)
	found, err := operator.New(granted(t, pool, "w", operator.DutyDeliver)).Doctor(t.Context(), operator.DutyDeliver)
	require.NoError(t, err)
	require.True(t, found.Usable, "%+v", found.Findings)

	found, err = operator.New(granted(t, pool, "w", operator.DutyDeliver)).Doctor(t.Context(), operator.DutyPutAside)
	require.NoError(t, err)
	require.True(t, found.Present)
	require.False(t, found.Usable)
	require.Equal(t, cursor.Refuse, found.Findings[0].Severity)
	require.Contains(t, found.Findings[0].Fix, "GRANT ")

	found, err = operator.New(granted(t, pool, "w", operator.DutyDeliver)).Doctor(t.Context(), operator.DutyDeliver, operator.DutyCount)
	require.NoError(t, err)
	require.True(t, found.Usable, "it delivers all the same")
	require.Equal(t, cursor.Warn, found.Findings[0].Severity)
	require.Contains(t, found.Findings[0].Problem, "status and metrics do not show its open dead letters")
	require.Contains(t, found.Findings[0].Fix, "GRANT SELECT (")

	_, err = operator.New(store(t, stranger(t, pool), "w")).Doctor(t.Context(), operator.DutyDeliver)
	require.NoError(t, err, "a role without rights may ask")
}
