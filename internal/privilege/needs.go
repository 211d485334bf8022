package privilege

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// Needs are the rights that statements need from the role that runs them.
type Needs struct {
	Privileges []Privilege
	// BlindSpots name the code that runs with them and was not examined.
	BlindSpots []string
}

// Add adds more needs to n.
func (n *Needs) Add(more Needs) {
	n.Privileges = Merge(slices.Concat(n.Privileges, more.Privileges))
	n.BlindSpots = slices.Compact(slices.Sorted(slices.Values(slices.Concat(n.BlindSpots, more.BlindSpots))))
}

// ErrUtility means that the statement is not a SELECT, INSERT, UPDATE, DELETE or MERGE. Only for these does the
// server describe what it will check.
var ErrUtility = errors.New("the server does not say what this kind of statement needs")

// Of returns the rights that the server will check before it runs one statement in the search_path of tx. Its
// parameters are $1 and so on. tx stays usable, even if the statement is wrong.
func Of(ctx context.Context, tx pgx.Tx, statement string) (Needs, error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return Needs{}, err
	}
	defer func() { _ = savepoint.Rollback(ctx) }() // the function must not stay
	function, err := create(ctx, savepoint, statement)
	if err != nil {
		return Needs{}, err
	}
	if _, err := savepoint.Exec(ctx, prepared.PathSQL, pgx.QueryExecModeExec); err != nil { // the statement needed the role's own
		return Needs{}, err
	}
	entries, err := readTree(ctx, savepoint, function)
	if err != nil {
		return Needs{}, err
	}
	needs, err := dependencies(ctx, savepoint, function)
	for _, e := range entries {
		var more Needs
		if err == nil {
			more, err = e.needs(ctx, savepoint)
		}
		needs.Add(more)
	}
	return needs, err
}

// create makes a function of the statement and returns its oid. The server reads its body in the same way as the
// statement, and stores the result.
func create(ctx context.Context, tx pgx.Tx, statement string) (uint32, error) {
	types, err := parameterTypes(ctx, tx, statement)
	if err != nil {
		return 0, err
	}
	sql := fmt.Sprintf(`/* privilege.create */
CREATE FUNCTION pg_temp.ordered_dispatcher_needs(%s) RETURNS void LANGUAGE sql
BEGIN ATOMIC
%s
;END`, types, statement)
	if _, err := tx.Exec(ctx, sql); err != nil {
		return 0, utility(err)
	}
	var oid uint32
	err = tx.QueryRow(ctx, `/* privilege.function */ SELECT 'pg_temp.ordered_dispatcher_needs'::pg_catalog.regproc::pg_catalog.oid`, pgx.QueryExecModeExec).Scan(&oid)
	return oid, err
}

// utility reports whether a statement is of a kind that cannot be examined.
func utility(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "0A000" {
		return fmt.Errorf("%w: %w", ErrUtility, err)
	}
	return err
}

const typesSQL = `/* privilege.types */
SELECT pg_catalog.format_type(parameter.oid, NULL)
FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY parameter (oid, n)
ORDER BY parameter.n
LIMIT 1000`

// parameterTypes lists the types that the server gives the parameters. It refuses more than one command, since it
// uses the extended protocol.
func parameterTypes(ctx context.Context, tx pgx.Tx, statement string) (string, error) {
	description, err := tx.Conn().PgConn().Prepare(ctx, "", statement, nil)
	if err != nil {
		return "", err
	}
	rows, err := tx.Query(ctx, typesSQL, pgx.QueryExecModeExec, description.ParamOIDs)
	if err != nil {
		return "", err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(names, ", "), err
}

// dependenciesSQL lists the recorded dependencies of the function. Objects that come with PostgreSQL are not
// recorded. A function that PUBLIC may call needs no grant.
const dependenciesSQL = `/* privilege.dependencies */
WITH noted AS (
	SELECT refclassid AS class, refobjid AS oid
	FROM pg_catalog.pg_depend
	WHERE classid = 'pg_catalog.pg_proc'::regclass AND objid = $1
), named AS (
	SELECT c.relnamespace AS schema, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' END AS kind, c.relname::text AS name, '' AS arguments, false AS blind
	FROM noted JOIN pg_catalog.pg_class c USING (oid)
	WHERE class = 'pg_catalog.pg_class'::regclass
	UNION ALL
	SELECT p.pronamespace, CASE WHEN NOT has_function_privilege('public', p.oid, 'EXECUTE') THEN 'FUNCTION' END,
		p.proname::text, format('(%s)', oidvectortypes(p.proargtypes)), NOT p.prosecdef
	FROM noted JOIN pg_catalog.pg_proc p USING (oid)
	WHERE class = 'pg_catalog.pg_proc'::regclass
	UNION ALL
	SELECT t.typnamespace, NULL, NULL, NULL, false
	FROM noted JOIN pg_catalog.pg_type t USING (oid)
	WHERE class = 'pg_catalog.pg_type'::regclass
)
SELECT n.nspname::text, coalesce(named.kind, ''), coalesce(named.name, ''), coalesce(named.arguments, ''), named.blind
FROM named
JOIN pg_catalog.pg_namespace n ON n.oid = named.schema
WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
LIMIT 10000`

type dependency struct {
	Schema, Kind, Name, Arguments string
	Blind                         bool // runs with the role's rights, and is not examined
}

// dependencies returns the needs for the schemas in which a statement names things, and for the things that it calls.
func dependencies(ctx context.Context, tx pgx.Tx, function uint32) (Needs, error) {
	rows, err := tx.Query(ctx, dependenciesSQL, pgx.QueryExecModeExec, function)
	if err != nil {
		return Needs{}, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dependency])
	var needs Needs
	for _, d := range all {
		name := pgx.Identifier{d.Schema, d.Name}.Sanitize() + d.Arguments
		needs.Privileges = append(needs.Privileges, Privilege{On: Schema, Name: pgx.Identifier{d.Schema}.Sanitize(), Right: "USAGE"})
		switch Object(d.Kind) {
		case Sequence:
			needs.Privileges = append(needs.Privileges, Privilege{On: Sequence, Name: name, Right: "USAGE"})
		case Function:
			needs.Privileges = append(needs.Privileges, Privilege{On: Function, Name: name, Right: "EXECUTE"})
		}
		if d.Blind {
			needs.BlindSpots = append(needs.BlindSpots, "function "+name)
		}
	}
	return needs, err
}
