package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// operatorRole is as whom operators act: a superuser whose settings change like those of the daemons' role.
const operatorRole = "operator"

// trapsSQL is what somebody makes in a schema that is searched before PostgreSQL's own: operators and functions that fail,
// and views that show nothing.
const trapsSQL = `
CREATE ROLE operator LOGIN SUPERUSER PASSWORD 'operator';
CREATE SCHEMA hostile;
GRANT USAGE ON SCHEMA hostile TO PUBLIC;
CREATE VIEW hostile.pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity WHERE false;
CREATE VIEW hostile.pg_prepared_xacts AS SELECT * FROM pg_catalog.pg_prepared_xacts WHERE false;
CREATE VIEW hostile.pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false;
GRANT SELECT ON ALL TABLES IN SCHEMA hostile TO PUBLIC;
DO $do$
DECLARE
	o   record;
	f   record;
	n   integer := 0;
	trap constant text := 'LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION ''stepped into a trap of the schema hostile''; END $f$';
BEGIN
	FOR o IN
		SELECT oprname, format_type(oprleft, NULL) AS a, format_type(oprright, NULL) AS b, format_type(oprresult, NULL) AS r
		FROM pg_operator
		WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprname IN ('=', '<>', '<', '>', '<=', '>=', '||', '+', '-')
			AND oprleft = ANY ('{text,name,oid,bigint,integer,timestamptz,interval,bytea,boolean,xid8,"char"}'::regtype[])
			AND oprright = ANY ('{text,name,oid,bigint,integer,timestamptz,interval,bytea,boolean,xid8,"char"}'::regtype[])
	LOOP
		n := n + 1;
		EXECUTE format('CREATE FUNCTION hostile.operator_%s(%s, %s) RETURNS %s %s', n, o.a, o.b, o.r, trap);
		EXECUTE format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = hostile.operator_%s)', o.oprname, o.a, o.b, n);
	END LOOP;
	FOR f IN
		SELECT proname, pg_get_function_identity_arguments(oid) AS arguments, format_type(prorettype, NULL) AS r, proretset
		FROM pg_proc
		WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND provariadic = 0 AND NOT proretset
			AND prorettype <> ALL ('{record,anyelement,anyarray,internal,trigger,cstring}'::regtype[])
			AND NOT proargtypes::oid[] && '{anyelement,anyarray,anynonarray,internal,cstring}'::regtype[]::oid[]
			AND proname IN ('now', 'clock_timestamp', 'statement_timestamp', 'set_config', 'current_setting', 'pg_backend_pid', 'quote_ident',
				'to_jsonb', 'to_char', 'date_part', 'lower', 'upper', 'left', 'right', 'length', 'octet_length', 'encode', 'decode', 'sha256',
				'convert_to', 'convert_from', 'pg_terminate_backend', 'pg_is_in_recovery', 'pg_current_xact_id', 'pg_current_snapshot',
				'pg_snapshot_xmin', 'pg_snapshot_xmax', 'pg_visible_in_snapshot', 'pg_xact_status', 'pg_get_expr', 'format_type',
				'current_database', 'current_schema', 'has_table_privilege', 'has_schema_privilege', 'pg_has_role', 'abs', 'hashtext',
				'timestamptz', 'array_length', 'array_to_string', 'pg_blocking_pids', 'inet_server_addr', 'pg_postmaster_start_time')
	LOOP
		EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS %s %s', f.proname, f.arguments, f.r, trap);
	END LOOP;
END
$do$;`

// roleSettings are what administrators set for a role without a thought of the dispatcher. The first set is none.
func roleSettings() [][]string {
	return [][]string{
		nil,
		{
			"quote_all_identifiers = on", "DateStyle = 'SQL, DMY'", "IntervalStyle = 'sql_standard'", "bytea_output = 'escape'",
			"TimeZone = 'Pacific/Chatham'", "extra_float_digits = -15", "default_transaction_isolation = 'repeatable read'",
			"standard_conforming_strings = off", "search_path = hostile, pg_catalog, public",
		},
		{
			"DateStyle = 'German'", "IntervalStyle = 'iso_8601'", "bytea_output = 'escape'", "TimeZone = 'America/St_Johns'",
			"default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "synchronous_commit = off",
			"array_nulls = off", "transform_null_equals = on", "plan_cache_mode = 'force_generic_plan'", "enable_indexscan = off",
			"row_security = off", "search_path = hostile, pg_catalog, app",
		},
		{"quote_all_identifiers = on", "TimeZone = 'Asia/Kathmandu'", "DateStyle = 'Postgres, MDY'", "enable_seqscan = off", "jit = off", "search_path = ''"},
	}
}

// settingsWorkload is roles whose settings change: sessions that begin later have others than those before. Nothing comes
// of it.
func settingsWorkload() workload {
	return workload{
		sql:   trapsSQL,
		kinds: map[history.Kind]kind{history.RoleSettings: changeSettings},
		tracks: []plan.Track{{
			Victim: plan.Fault{Victim: "settings"},
			Kinds:  []plan.Chance{{Weight: 1, Kind: history.RoleSettings}},
			Min:    3 * time.Second, Max: 10 * time.Second,
		}},
	}
}

// changeSettings gives the daemons' roles and the operators' others than they had.
func changeSettings(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	begin()
	return missedIf(f.database.do(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settingsSQL(fault.Choice), pgx.QueryExecModeSimpleProtocol)
		return err
	}))
}

// hostileToDaemons is the choice that leaves the operators' role alone, and has the daemons' first sessions quote all names.
const hostileToDaemons = 0

// settingsSQL is one transaction. Each role has the set behind that of the role before it.
func settingsSQL(choice uint64) string {
	all := roleSettings()
	var b strings.Builder
	for i, role := range settingRoles() {
		fmt.Fprintf(&b, "ALTER ROLE %s RESET ALL;\n", role)
		for _, setting := range all[(choice+uint64(i))%uint64(len(all))] {
			fmt.Fprintf(&b, "ALTER ROLE %s SET %s;\n", role, setting)
		}
	}
	return b.String()
}

// settingRoles are the operators' role and the daemons' roles.
func settingRoles() []string {
	roles := []string{operatorRole}
	for _, s := range slots() {
		if s.role != "" && !slices.Contains(roles, s.role) {
			roles = append(roles, s.role)
		}
	}
	return roles
}
