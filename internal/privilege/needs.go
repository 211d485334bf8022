package privilege

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
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
var ErrUtility = errors.New("the server does not report what this kind of statement needs")

// Of returns the rights that the server will check before it runs one statement in the search_path of tx. Its
// parameters are $1 and so on. tx stays usable, even if the statement is wrong.
func Of(ctx context.Context, tx pgx.Tx, statement string) (Needs, error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return Needs{}, err
	}
	defer func() { _ = savepoint.Rollback(ctx) }() // the function must not stay
	function, tree, err := create(ctx, savepoint, statement)
	if err != nil {
		return Needs{}, err
	}
	if _, err := savepoint.Exec(ctx, prepared.PathSQL, pgx.QueryExecModeExec); err != nil { // the statement needed the role's own
		return Needs{}, err
	}
	checks, err := parseTree(tree)
	if err != nil {
		return Needs{}, err
	}
	return needs(ctx, savepoint, function, checks)
}

const treeSQL = `/* privilege.tree */
SELECT oid, prosqlbody::pg_catalog.text
FROM pg_catalog.pg_proc
WHERE oid OPERATOR(pg_catalog.=) 'pg_temp.ordered_dispatcher_needs'::pg_catalog.regproc`

// create makes a function of the statement and returns its oid and its tree. The server reads the body in the same
// way as the statement, and stores the result.
func create(ctx context.Context, tx pgx.Tx, statement string) (function uint32, tree string, err error) {
	types, err := parameterTypes(ctx, tx, statement)
	if err != nil {
		return 0, "", err
	}
	sql := fmt.Sprintf(`/* privilege.create */
CREATE FUNCTION pg_temp.ordered_dispatcher_needs(%s) RETURNS void LANGUAGE sql
BEGIN ATOMIC
%s
;END`, types, statement)
	if _, err := tx.Exec(ctx, sql); err != nil {
		return 0, "", utility(err)
	}
	err = tx.QueryRow(ctx, treeSQL, pgx.QueryExecModeExec).Scan(&function, &tree)
	return function, tree, err
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

// needsSQL lists what function $1 needs: the schemas, sequences and functions that its recorded dependencies name,
// and the rights on relations that its tree names, as checks of the relations $2, the rights $3 and the columns $4. A
// row is a privilege, or a blind spot, which has no kind. Objects that come with PostgreSQL are not recorded, and a
// function that PUBLIC may call needs no grant. For an INSERT the list has the sequences that fill the columns which
// the INSERT does not name. The sequences of identity columns need no grant, and do not belong to a default.
const needsSQL = `/* privilege.needs */
WITH noted AS (
	SELECT refclassid AS class, refobjid AS oid
	FROM pg_depend
	WHERE classid = 'pg_proc'::regclass AND objid = $1
), relation AS (
	SELECT relkind, relnamespace AS schema, relname::text AS name
	FROM noted JOIN pg_class c USING (oid)
	WHERE class = 'pg_class'::regclass
), called AS (
	SELECT p.oid, pronamespace AS schema, proname::text AS name, prosecdef, ARRAY(
		SELECT part
		FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS a (oid, n)
		JOIN pg_type t ON t.oid = a.oid
		JOIN pg_namespace s ON s.oid = t.typnamespace,
		LATERAL (VALUES (1, s.nspname::text), (2, t.typname::text)) AS parts (i, part)
		ORDER BY n, i
	) AS arguments
	FROM noted JOIN pg_proc p USING (oid)
	WHERE class = 'pg_proc'::regclass
), own AS (
	SELECT 'SCHEMA' AS kind, 'USAGE' AS "right", schema, '' AS name, NULL::text[] AS arguments
	FROM relation
	UNION
	SELECT 'SCHEMA', 'USAGE', schema, '', NULL FROM called
	UNION
	SELECT 'SCHEMA', 'USAGE', typnamespace, '', NULL
	FROM noted JOIN pg_type t USING (oid)
	WHERE class = 'pg_type'::regclass
	UNION
	SELECT 'SEQUENCE', 'USAGE', schema, name, NULL FROM relation WHERE relkind = 'S'
	UNION
	SELECT 'FUNCTION', 'EXECUTE', schema, name, arguments FROM called WHERE NOT has_function_privilege('public', oid, 'EXECUTE')
	UNION
	SELECT '', 'function', schema, name, arguments FROM called WHERE NOT prosecdef
), checked AS (
	SELECT c.oid, c.relnamespace AS schema, c.relname::text AS name, "right", members::int[] AS members
	FROM unnest($2::oid[], $3::text[], $4::text[]) AS checks (oid, "right", members)
	JOIN pg_class c USING (oid)
)
SELECT kind, "right", nspname::text AS schema, name, arguments, NULL::text[] AS columns
FROM own JOIN pg_namespace n ON n.oid = schema
WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\_%'
UNION ALL
SELECT 'TABLE', "right", nspname, name, NULL, CASE WHEN NOT members && ARRAY[` + wholeRow + `] THEN ARRAY(
	SELECT attname::text FROM pg_attribute WHERE attrelid = checked.oid AND attnum + ` + wholeRow + ` = ANY (members)
) END
FROM checked JOIN pg_namespace n ON n.oid = schema
UNION ALL
SELECT 'SEQUENCE', 'USAGE', nspname, s.relname, NULL, NULL
FROM checked
JOIN pg_attrdef a ON a.adrelid = checked.oid AND a.adnum + ` + wholeRow + ` <> ALL (members)
JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
JOIN pg_namespace n ON n.oid = s.relnamespace
WHERE "right" = 'INSERT'
UNION ALL
SELECT '', 'triggers of', nspname, name, NULL, NULL
FROM checked JOIN pg_namespace n ON n.oid = schema
WHERE "right" <> 'SELECT' AND EXISTS (
	SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
	WHERE t.tgrelid = checked.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND NOT p.prosecdef
)
LIMIT 20000`

// object is one row of needsSQL.
type object struct {
	Kind, Right, Schema, Name string
	Arguments                 []string // of a function: schema and name of each type, in turn
	Columns                   []string
}

// blind are the rights of a blind spot in needsSQL.
var blind = []string{"function", "triggers of"}

// maxName is how many bytes a name may have. PostgreSQL itself cuts names after 63 bytes, and other builds of it a little
// later.
const maxName = 255

// sql returns the name of the object, quoted. The server may be another one than the cursor's, and an operator runs
// what is made of its answer: each part of it is a name, and short enough that no reader of the command cuts it.
func (o object) sql() (string, error) {
	known := rank(objects, o.Kind) >= 0 && rank(rights, o.Right) >= 0 || o.Kind == "" && rank(blind, o.Right) >= 0
	if !known || len(o.Arguments)%2 != 0 {
		return "", errors.New("the server names a kind of object, or a right, that PostgreSQL does not have")
	}
	tooLong := func(name string) bool { return len(name) > maxName }
	if slices.ContainsFunc(slices.Concat([]string{o.Schema, o.Name}, o.Arguments, o.Columns), tooLong) {
		return "", fmt.Errorf("the server gives an object a name of more than %d bytes, which PostgreSQL does not take", maxName)
	}
	name := pgx.Identifier{o.Schema}
	if o.Name != "" {
		name = append(name, o.Name)
	}
	if o.Arguments == nil {
		return name.Sanitize(), nil
	}
	var types []string
	for part := range slices.Chunk(o.Arguments, 2) {
		types = append(types, typeName(part[0], part[1]))
	}
	return name.Sanitize() + "(" + strings.Join(types, ", ") + ")", nil
}

// plainType is a name that means the same without quotes. "char" does not, and "any" is a word of SQL.
var plainType = regexp.MustCompile(`^_?[a-z][a-z0-9_]{2,}$`)

func typeName(schema, name string) string {
	if schema == "pg_catalog" && plainType.MatchString(name) && name != "char" && name != "any" {
		return name
	}
	return pgx.Identifier{schema, name}.Sanitize()
}

// needs replaces the numbers of checks by names, and adds what the function's dependencies name.
func needs(ctx context.Context, tx pgx.Tx, function uint32, checks checks) (needs Needs, err error) {
	rows, err := tx.Query(ctx, needsSQL, pgx.QueryExecModeExec, function, checks.relations, checks.rights, checks.columns)
	if err != nil {
		return Needs{}, err
	}
	objects, err := pgx.CollectRows(rows, pgx.RowToStructByPos[object])
	for _, o := range objects {
		name, nameErr := o.sql()
		switch {
		case nameErr != nil:
			return Needs{}, nameErr
		case o.Kind == "":
			needs.BlindSpots = append(needs.BlindSpots, visible.SQL(o.Right+" "+name))
		default:
			needs.Privileges = append(needs.Privileges, Privilege{On: Object(o.Kind), Name: name, Right: o.Right, Columns: o.Columns})
		}
	}
	needs.Add(Needs{}) // sorts them
	return needs, err
}
