package privilege

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// The columns of a right on a table, of which $3 names the ones in question; NULL means all of them. A right that was
// granted on each of them is as good as one on the table.
const missingColumnsSQL = `/* privilege.missing_columns */
SELECT array_agg(attname::text ORDER BY attname)
FROM pg_catalog.pg_attribute
WHERE attrelid = $1::regclass
	AND NOT attisdropped
	AND CASE WHEN $3::text[] IS NULL THEN attnum > 0 ELSE attname = ANY ($3::text[]) END
	AND NOT has_column_privilege(attrelid, attnum, $2)`

// Missing returns the privileges that the current role does not hold, itself or through another role. While a schema
// may not be used, it does not check the objects in it.
func Missing(ctx context.Context, db prepared.Beginner, privileges []Privilege) (missing []Privilege, err error) {
	err = prepared.Within(ctx, db, func(tx pgx.Tx) error {
		missing, err = missingWithin(ctx, tx, privileges)
		return err
	})
	return missing, err
}

func missingWithin(ctx context.Context, db pgx.Tx, privileges []Privilege) ([]Privilege, error) {
	var missing []Privilege
	for _, p := range Merge(privileges) { // schemas come before the objects in them
		if p.On != Database && p.On != Schema && len(missing) > 0 && missing[0].On == Schema {
			return missing, nil
		}
		left, err := p.missing(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("look up the right to %s on %s: %w", p, p.Name, err)
		}
		if left != nil {
			missing = append(missing, *left)
		}
	}
	return missing, nil
}

// missing returns the part of the privilege that is not held; nil if all is.
func (p Privilege) missing(ctx context.Context, db pgx.Tx) (*Privilege, error) {
	check := map[Object]string{
		Database: "has_database_privilege($1::name, $2)",
		Schema:   "has_schema_privilege($1::regnamespace, $2)",
		Table:    "has_table_privilege($1::regclass, $2)",
		Sequence: "has_sequence_privilege($1::regclass, $2)",
		Function: "has_function_privilege($1::regprocedure, $2)",
	}[p.On]
	if p.anyColumn() {
		check = "has_any_column_privilege($1::regclass, $2)"
	}
	var held bool
	if err := db.QueryRow(ctx, "/* privilege.held */ SELECT "+check, pgx.QueryExecModeExec, p.Name, p.Right).Scan(&held); err != nil || held {
		return nil, err
	}
	if p.On != Table || p.Right == "DELETE" || p.anyColumn() {
		return &p, nil
	}
	var columns []string
	if err := db.QueryRow(ctx, missingColumnsSQL, pgx.QueryExecModeExec, p.Name, p.Right, p.Columns).Scan(&columns); err != nil || columns == nil {
		return nil, err
	}
	return p.lacks(columns)
}

// lacks returns the privilege on those of its columns that the server says are missing. An operator runs what is made
// of the answer, so it may name no other one.
func (p Privilege) lacks(columns []string) (*Privilege, error) {
	if p.Columns == nil {
		return &p, nil
	}
	if other := func(name string) bool { return !slices.Contains(p.Columns, name) }; slices.ContainsFunc(columns, other) {
		return nil, errors.New("the server names a column that it was not asked about")
	}
	p.Columns = columns
	return &p, nil
}

func (p Privilege) anyColumn() bool { return p.Columns != nil && len(p.Columns) == 0 }
