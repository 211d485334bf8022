package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// deletes reports whether the rule deletes single rows.
func (r TableRule) deletes() bool {
	mode := r.Filled().Mode
	return mode != rules.ModeMark && mode != rules.ModeDrop
}

// cascadeSQL finds a foreign key with ON DELETE CASCADE, also through several, by which rows that are deleted from a
// table ($1) take rows of a table with them that one of $2 has. It needs no right to them.
const cascadeSQL = `/* daemon.cascade */
WITH RECURSIVE hit (oid, key) AS (
	SELECT to_regclass($1)::oid, 0::oid
	UNION
	SELECT next.oid, next.key
	FROM hit, LATERAL (
		SELECT i.inhrelid, hit.key FROM pg_inherits i WHERE i.inhparent = hit.oid
		UNION ALL
		SELECT o.conrelid, o.oid FROM pg_constraint o WHERE o.contype = 'f' AND o.confdeltype = 'c' AND o.confrelid = hit.oid
	) AS next (oid, key)
), read (name, oid) AS (
	SELECT name, to_regclass(name)::oid FROM unnest($2::text[]) name
	UNION
	SELECT read.name, i.inhrelid FROM pg_inherits i JOIN read ON i.inhparent = read.oid
)
SELECT o.conname::text, o.conrelid::regclass::text, read.name
FROM hit
JOIN read USING (oid)
JOIN pg_constraint o ON o.oid = hit.key
ORDER BY 2, 1, 3
LIMIT 1`

// errCascades reports a rule whose deletion would not stop at the rows that it looks at.
var errCascades = errors.New("nothing was removed, because rows of a table that a process reads would go as well, delivered or not")

// uncascaded refuses if rows deleted from a table take rows with them that a process reads: no pass asks whether they
// are delivered.
func uncascaded(ctx context.Context, pool *pgxpool.Pool, name string, readers []elsewhere) error {
	read := make([]string, len(readers))
	for i, reader := range readers {
		read[i] = reader.table
	}
	why, err := cascade(ctx, pool, name, read)
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s: %s", errCascades, why, cascadeFix)
	}
	return err
}

// cascades finds what uncascaded would refuse, among the processes of the file.
func (d *doctor) cascades(ctx context.Context, r TableRule, source *table.Source) error {
	if !r.deletes() {
		return nil
	}
	var read []string
	for _, p := range d.config.Processes {
		reader, err := d.config.keys(p, d.pool)
		if err != nil {
			return err
		}
		name, err := reader.Name(ctx)
		if err != nil {
			return err
		}
		read = append(read, name)
	}
	name, err := source.Name(ctx)
	if err != nil {
		return err
	}
	why, err := cascade(ctx, d.pool, name, read)
	if err == nil && why != "" {
		d.find("", Refuse, cascadeFix, "retention of %s removes nothing, since it would remove records that no one has delivered: %s", visible.Line(r.Table), why)
	}
	return err
}

const cascadeFix = "make the foreign key ON DELETE RESTRICT, or delete no rows: give the rule mode mark or drop, or erase with --blank"

// cascade describes such a foreign key; "" if there is none.
func cascade(ctx context.Context, pool *pgxpool.Pool, name string, read []string) (why string, err error) {
	var constraint, from, of string
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, cascadeSQL, binary, name, read).Scan(&constraint, &from, &of)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the foreign key %s of %s has ON DELETE CASCADE, and a process reads %s",
		visible.Line(constraint), visible.Line(from), visible.Line(of)), nil
}
