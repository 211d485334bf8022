package shadow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgshape"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// tableSQL makes the table. A position is compared byte by byte: its order is the order of the records.
const tableSQL = `CREATE TABLE {table} (
	process text NOT NULL,
	position text COLLATE "C" NOT NULL,
	sequence bigint NOT NULL,
	dedup_key text NOT NULL,
	recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	target text NOT NULL,
	headers jsonb NOT NULL,
	body bytea NOT NULL,
	other text,
	other_target text,
	other_headers jsonb,
	other_body bytea,
	differs text[],
	PRIMARY KEY (process, position)
);
COMMENT ON TABLE {table} IS 'Calls that ordered-dispatcher recorded instead of sending them';
COMMENT ON COLUMN {table}.other IS 'the live process to compare with';
COMMENT ON COLUMN {table}.other_body IS 'like other_target and other_headers, NULL where its call is the same';
COMMENT ON COLUMN {table}.differs IS 'what differs; empty: nothing; NULL: not compared';
`

// columns are those that a Sink and Compare need.
var columns = []string{
	"process text", "position text", "sequence bigint", "dedup_key text", "recorded_at timestamp with time zone", "target text", "headers jsonb",
	"body bytea", "other text", "other_target text", "other_headers jsonb", "other_body bytea", "differs text[]",
}

// on puts the table into a statement.
func on(text string, table pgx.Identifier) string {
	return strings.ReplaceAll(text, "{table}", table.Sanitize())
}

// SQL returns the statements that make the table.
func SQL(table pgx.Identifier) string { return on(tableSQL, table) }

// stepTimeout bounds Create and Missing.
const stepTimeout = 30 * time.Second

// lockSQL lets one session at a time look for the table and make it.
const lockSQL = `/* shadow.lock */ SELECT pg_advisory_xact_lock(hashtextextended('ordered-dispatcher shadow ' || $1, 0))`

// Create makes the table, if it is missing, and reports whether it did. Its schema must be there. If the name is taken by
// something without the columns, the error is ErrOtherTable. A table of another role, or with a trigger of one, is refused
// as well.
func Create(ctx context.Context, db prepared.Beginner, table pgx.Identifier) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err = prepared.Within(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL, pgx.QueryExecModeExec, table.Sanitize()); err != nil {
			return err
		}
		found, err := pgshape.Of(ctx, tx, table)
		if err != nil {
			return err
		}
		if found != nil {
			return cmp.Or(lacks(found), pgshape.Trusted(ctx, tx, table))
		}
		made = true
		_, err = tx.Exec(ctx, "/* shadow.create */ "+SQL(table), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("create the table of calls %s: %w", table.Sanitize(), err)
	}
	return made, nil
}

// ErrNoTable means that the table is not there.
var ErrNoTable = errors.New("the table of recorded calls is not there")

// Inspect returns ErrNoTable or ErrOtherTable if calls cannot be recorded in the table.
func Inspect(ctx context.Context, db prepared.Beginner, table pgx.Identifier) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := prepared.Within(ctx, db, func(tx pgx.Tx) error {
		found, err := pgshape.Of(ctx, tx, table)
		if err == nil && found == nil {
			return ErrNoTable
		}
		return errors.Join(err, lacks(found))
	})
	if err != nil {
		return fmt.Errorf("look at %s: %w", table.Sanitize(), err)
	}
	return nil
}

// lacks compares what has the name with what is needed; nil if nothing has it.
func lacks(found *pgshape.Shape) error {
	if found == nil {
		return nil
	}
	if missing := found.Lacks(columns...); len(missing) > 0 {
		return fmt.Errorf("%w: something of that name lacks %s: choose another name, or move it away", ErrOtherTable, strings.Join(missing, ", "))
	}
	return nil
}

// Needs are the privileges of a role that records calls. SELECT is for the rows that it replaces.
func Needs(table pgx.Identifier) []privilege.Privilege {
	needs := []privilege.Privilege{{On: privilege.Schema, Name: table[:1].Sanitize(), Right: "USAGE"}}
	for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
		needs = append(needs, privilege.Privilege{On: privilege.Table, Name: table.Sanitize(), Right: right})
	}
	return needs
}

// CompareNeeds are the privileges of a role that compares. It sees no call.
func CompareNeeds(table pgx.Identifier) []privilege.Privilege {
	return []privilege.Privilege{
		{On: privilege.Schema, Name: table[:1].Sanitize(), Right: "USAGE"},
		{On: privilege.Table, Name: table.Sanitize(), Right: "SELECT", Columns: []string{"process", "position", "sequence", "dedup_key", "other", "differs"}},
	}
}
