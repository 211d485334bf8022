package operator_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// warned are the problems that the doctor warns of.
func warned(t testing.TB, s *cursor.Store) (all []string) {
	t.Helper()
	found, err := operator.New(s).Doctor(t.Context(), operator.DutyDeliver)
	require.NoError(t, err)
	for _, f := range found.Findings {
		if f.Severity == cursor.Warn {
			all = append(all, f.Problem+": "+f.Fix)
		}
	}
	return all
}

// owner is a role of a test's own, which gives back what it owns.
func owner(t *testing.T, pool *pgxpool.Pool) (role string) {
	t.Helper()
	role = pgtest.Role(t, pool, "owner_", "")
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "REASSIGN OWNED BY "+role+" TO current_user")
		require.NoError(t, err)
	})
	return role
}

func TestDoctor_WarnsOfWhatStrangersMayDoBesideTheCursor(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := granted(t, pool, "w", operator.DutyDeliver)
	require.Empty(t, warned(t, s))

	exec(t, pool, "GRANT CREATE ON SCHEMA dispatch TO PUBLIC")
	all := warned(t, s)
	require.Len(t, all, 1)
	require.Contains(t, all[0], `every role may create in schema "dispatch", beside the cursor tables: REVOKE CREATE ON SCHEMA "dispatch" FROM PUBLIC`)

	role := owner(t, pool)
	for _, table := range []string{"cursor", "ordered_dispatcher_migration"} {
		exec(t, pool, fmt.Sprintf("ALTER TABLE dispatch.%s OWNER TO %s", table, role))
	}
	exec(t, pool, "REVOKE CREATE ON SCHEMA dispatch FROM PUBLIC")
	all = warned(t, s)
	require.Len(t, all, 2)
	require.Contains(t, all[0], `"dispatch"."cursor" belongs to role `+role)
	require.Contains(t, all[0], `ALTER TABLE "dispatch"."cursor" OWNER TO`)
	require.Contains(t, all[1], `"dispatch"."ordered_dispatcher_migration" belongs to role `+role)
}

func TestDoctor_TrustsTheRolesThatMayOwnTheTables(t *testing.T) {
	t.Parallel()
	for name, trust := range map[string]string{
		"may create": "GRANT CREATE ON SCHEMA dispatch TO %s",
		"owner":      "ALTER SCHEMA dispatch OWNER TO %s",
		"ours":       `DO $$ BEGIN EXECUTE 'GRANT %s TO ' || (SELECT quote_ident(rolname) FROM pg_roles WHERE rolname ~ '^Od-' AND has_schema_privilege(rolname, 'dispatch', 'USAGE') LIMIT 1); END $$`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := granted(t, pool, "w", operator.DutyDeliver)
			role := owner(t, pool)
			exec(t, pool, fmt.Sprintf("ALTER TABLE dispatch.cursor OWNER TO %s", role))
			require.Len(t, warned(t, s), 1)
			exec(t, pool, fmt.Sprintf(trust, role))
			require.Empty(t, warned(t, s))
		})
	}
}
