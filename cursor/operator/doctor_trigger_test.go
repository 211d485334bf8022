package operator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// TestDoctor_NamesCodeOfOthersAtTheCursorTables: a trigger or a rule there runs as the role
// that writes.
func TestDoctor_NamesCodeOfOthersAtTheCursorTables(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := granted(t, pool, "w", operator.DutyDeliver)
	require.Empty(t, warned(t, s), "those of the migrations are known")
	role := owner(t, pool)
	exec(t, pool, `
		CREATE SCHEMA theirs;
		CREATE FUNCTION theirs.code() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE FUNCTION dispatch.mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER mine AFTER UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION dispatch.mine();`)
	require.Empty(t, warned(t, s), "the owner's own")

	exec(t, pool, `
		CREATE TRIGGER theirs AFTER UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION theirs.code();
		CREATE RULE quiet AS ON INSERT TO dispatch.cursor_event DO ALSO NOTHING;
		ALTER FUNCTION theirs.code() OWNER TO `+role+`; ALTER FUNCTION dispatch.cursor_set_updated_at() OWNER TO `+role)
	require.Equal(t, []string{
		`trigger "set_updated_at" on "dispatch"."cursor" calls dispatch.cursor_set_updated_at of role ` + role + `, with the rights of each worker and operator that writes there: look at it, then give it to the role that runs ` + "`migrate`" + `: ALTER FUNCTION dispatch.cursor_set_updated_at OWNER TO …`,
		`trigger "theirs" on "dispatch"."cursor" calls theirs.code of role ` + role + `, with the rights of each worker and operator that writes there: DROP TRIGGER "theirs" ON "dispatch"."cursor"`,
		`rule "quiet" on "dispatch"."cursor_event" does not come from the migrations: it changes what workers write: DROP RULE "quiet" ON "dispatch"."cursor_event"`,
	}, warned(t, s))
}
