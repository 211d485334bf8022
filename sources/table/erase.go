package table

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Erase is what to erase of a table: rows of a key, or columns of them.
type Erase struct {
	// By is the column that has the key; "": Columns.Key of the source.
	By, Key string
	// Blank are the columns to blank; none: the rows are deleted. A column becomes NULL or, if it must not be NULL, an
	// empty text or JSON object. Rows whose payload is in a claim store must be deleted (ErrClaimed).
	Blank []string
	// Archive is the table of a rule of retention that has such rows as well; "" if there is none.
	Archive string
}

// Erased counts what was erased.
type Erased struct{ Rows, Archived int64 }

// Errors of Erase.
var (
	// ErrUndelivered reports rows that a process has yet to deliver.
	ErrUndelivered = errors.New("undelivered")
	// ErrDropping reports a partition whose rows cannot be erased, or not be found, since it is on its way to be dropped.
	ErrDropping = errors.New("a partition is being dropped or detached")
)

const undeliveredKeySQL = `/* source.undelivered_key */
SELECT %s
FROM %s AS t
WHERE t.%s::text = $1 AND (%s)
LIMIT 1`

// Erase erases rows of a key that no process needs. If a process has yet to deliver one of them, it returns
// ErrUndelivered, and ErrDropping if rows may be in a table that is Unread. The transaction must end without a commit
// then. keep does not count.
func (p *Pruning) Erase(ctx context.Context, tx pgx.Tx, e Erase) (Erased, error) {
	by, err := p.by(ctx, tx, e)
	if err != nil {
		return Erased{}, err
	}
	if err := p.delivered(ctx, tx, by, e.Key); err != nil {
		return Erased{}, err
	}
	set, err := p.blanks(ctx, tx, e.Blank)
	if err != nil {
		return Erased{}, err
	}
	if set != "" {
		if err := p.whole(ctx, tx, by, e); err != nil {
			return Erased{}, err
		}
	}
	v := values{[]byte(e.Key)}
	conditions := []string{fmt.Sprintf("t.%s::text = $1", pgx.Identifier{by.name}.Sanitize())}
	for _, n := range p.needs {
		spared, err := n.spared(&v)
		if err != nil {
			return Erased{}, err
		}
		conditions = append(conditions, spared)
	}
	tables, err := p.erased(e)
	if err != nil {
		return Erased{}, err
	}
	var erased Erased
	if erased.Rows, err = change(ctx, tx, tables[0], set, strings.Join(conditions, " AND "), v); err != nil {
		return erased, p.dropping(err)
	}
	if err := p.allRead(ctx, tx); err != nil || e.Archive == "" {
		return erased, err
	}
	erased.Archived, err = change(ctx, tx, tables[1], set, conditions[0], v[:1])
	return erased, err
}

// dropping explains the error of an UPDATE in a partition that was closed: see CloseSQL.
func (p *Pruning) dropping(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.ConstraintName != Closing {
		return err
	}
	return fmt.Errorf("%w: a row of that key is in %s, and retention has closed it. Nothing was erased: let `ordered-dispatcher prune` drop it, then erase again, or delete the rows instead of blanking columns",
		ErrDropping, qualify(refused.SchemaName, refused.TableName))
}

// allRead returns ErrDropping if a table is Unread. It comes after the change: a DETACH may commit at any time, and what
// was attached after the change was attached at the time of it.
func (p *Pruning) allRead(ctx context.Context, tx pgx.Tx) error {
	unread, err := Unread(ctx, tx, p.layout.oid)
	if err != nil || len(unread) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s is detached from %s, or about to be, and may have rows of that key. Nothing was erased: "+
		"let `ordered-dispatcher prune` drop it or, if you detach it yourself, end that and drop it, or attach it again. Then erase again",
		ErrDropping, qualify(unread[0][0], unread[0][1]), p.Table())
}

// by returns the column that has the key.
func (p *Pruning) by(ctx context.Context, tx pgx.Tx, e Erase) (writable, error) {
	name := cmp.Or(e.By, p.source.config.Columns.Key)
	if name == "" {
		return writable{}, fmt.Errorf("the source of %s has no columns.key: name the column that has the key", p.Table())
	}
	return p.find(ctx, tx, name)
}

// Keyed are the records of a key, as one process names them.
type Keyed struct {
	Process string
	// Table and IDs are the Table and the ID of the records of which the table, or its archive, has a row.
	Table string
	IDs   []string
	// Positions are those of the records, in the order of the process. A row whose time is infinite has none.
	Positions []cursor.Position
	// ByKey: the Key of a record of this process is what the column of the key has.
	ByKey bool
}

const keyedSQL = `/* source.keyed */
SELECT %s
FROM %s AS t
WHERE t.%s::text = $1`

// Keyed returns the records of a key for each process that Needs has. It is for the transaction of Erase, before it.
func (p *Pruning) Keyed(ctx context.Context, tx pgx.Tx, e Erase) (all []Keyed, err error) {
	by, err := p.by(ctx, tx, e)
	if err != nil {
		return nil, err
	}
	tables, err := p.erased(e)
	if err != nil {
		return nil, err
	}
	for _, n := range p.needs {
		c := n.Source.config.Columns
		key, _ := ColumnName(c.Key)
		keyed := Keyed{Process: n.Process, Table: n.layout.name(), ByKey: c.Key != "" && key == by.name}
		for _, table := range tables {
			found, err := run(ctx, tx, fmt.Sprintf(keyedSQL, n.layout.keys(n.Source.config), table, pgx.Identifier{by.name}.Sanitize()), values{[]byte(e.Key)})
			if err != nil {
				return nil, err
			}
			for _, row := range found.Rows {
				keyed.IDs = append(keyed.IDs, string(row[0]))
				if record, err := n.layout.record(row); err == nil {
					keyed.Positions = append(keyed.Positions, record.Position)
				}
			}
		}
		all = append(all, keyed)
	}
	return all, nil
}

// erased are the tables that have rows to erase, quoted for SQL.
func (p *Pruning) erased(e Erase) ([]string, error) {
	if e.Archive == "" {
		return []string{p.layout.sql()}, nil
	}
	archive, err := parseName(e.Archive)
	return []string{p.layout.sql(), pgx.Identifier(archive).Sanitize()}, err
}

const foundSQL = `/* source.to_erase */ SELECT count(*) FROM %s AS t WHERE %s`

// change deletes rows, or sets columns of them, and returns how many. It returns an error if that is fewer than there
// were: a trigger that returns NULL keeps a row without an error.
func change(ctx context.Context, tx pgx.Tx, table, set, where string, v values) (int64, error) {
	found, err := run(ctx, tx, fmt.Sprintf(foundSQL, table, where), v)
	if err != nil {
		return 0, err
	}
	rows, err := strconv.ParseInt(string(found.Rows[0][0]), 10, 64)
	if err != nil {
		return 0, err
	}
	sql := fmt.Sprintf("/* source.erase */ DELETE FROM %s AS t WHERE %s", table, where)
	if set != "" {
		sql = fmt.Sprintf("/* source.blank */ UPDATE %s AS t SET %s WHERE %s", table, set, where)
	}
	result, err := run(ctx, tx, sql, v)
	if err != nil {
		return 0, err
	}
	changed := result.CommandTag.RowsAffected()
	if changed < rows {
		return 0, fmt.Errorf("a trigger or a rule (CREATE RULE) of %s kept %d of %d rows of that key as they are, or another session changed them meanwhile. "+
			"Nothing was erased: let the trigger pass them, then erase again", table, rows-changed, rows)
	}
	return changed, nil
}

// delivered returns ErrUndelivered if a process needs a row of the key.
func (p *Pruning) delivered(ctx context.Context, tx pgx.Tx, by writable, key string) error {
	for _, n := range p.needs {
		v := values{[]byte(key)}
		needed, err := n.needed(&v)
		if err != nil {
			return err
		}
		found, err := run(ctx, tx, fmt.Sprintf(undeliveredKeySQL, p.layout.keys(p.source.config), p.layout.sql(), pgx.Identifier{by.name}.Sanitize(), needed), v)
		if err != nil {
			return err
		}
		if len(found.Rows) > 0 {
			var record processor.Record
			if record, err = p.layout.record(found.Rows[0]); err != nil {
				return err
			}
			return fmt.Errorf("%w: process %s has yet to deliver row %s of that key. Nothing was erased: let it deliver or skip the row, then erase again", ErrUndelivered, n.Process, record.ID)
		}
	}
	return nil
}

// ErrClaimed reports rows whose payload is in a claim store.
var ErrClaimed = errors.New("a payload is in a claim store")

// claimedSQL finds rows with the header of a claim check (claim.Header), and rows that must be looked at: a json may have
// escapes that no text can have, such as \u0000, and no operator of the server takes it then.
const claimedSQL = `/* source.claimed */
SELECT t.%[1]s::text, t.%[4]s::text
FROM %[2]s AS t
WHERE t.%[3]s::text = $1
	AND CASE WHEN strpos(t.%[4]s::text, chr(92) || 'u') > 0 THEN true ELSE t.%[4]s::json -> 'claim-check' IS NOT NULL END`

// whole returns ErrClaimed if a row of the key, or one in the archive, has its payload in a claim store. As long as the
// row is there, the object is kept, so a blanked column would not erase it.
func (p *Pruning) whole(ctx context.Context, tx pgx.Tx, by writable, e Erase) error {
	tables, err := p.erased(e)
	if err != nil {
		return err
	}
	for _, n := range append([]need{{Need: Need{Source: p.source}, layout: p.layout}}, p.needs...) {
		c := n.Source.config.Columns
		if c.Headers == "" {
			continue
		}
		for _, table := range tables {
			found, err := run(ctx, tx, fmt.Sprintf(claimedSQL, quote(c.ID), table, pgx.Identifier{by.name}.Sanitize(), quote(c.Headers)), values{[]byte(e.Key)})
			if err != nil {
				return err
			}
			for _, row := range found.Rows {
				var headers map[string]json.RawMessage
				err := json.Unmarshal(row[1], &headers)
				if _, is := headers["claim-check"]; err == nil && !is {
					continue
				}
				return fmt.Errorf("%w: row %s of that key in %s has the header claim-check, and its object stays as long as the row. Nothing was erased: "+
					"delete the rows instead of blanking columns, then remove the object with `ordered-dispatcher claims collect`, or with Collect of package outbox", ErrClaimed, row[0], table)
			}
		}
	}
	return nil
}

// blanks is the SET of an UPDATE that empties columns.
func (p *Pruning) blanks(ctx context.Context, tx pgx.Tx, names []string) (string, error) {
	var all []string
	for _, name := range names {
		c, err := p.find(ctx, tx, name)
		if err != nil {
			return "", err
		}
		value := "NULL"
		switch {
		case !c.required:
		case c.kind == "json" || c.kind == "jsonb":
			value = "'{}'"
		case c.kind == "text" || c.kind == "character varying" || c.kind == "bytea":
			value = "''"
		default:
			return "", fmt.Errorf("column %s of %s is a %s that must not be NULL, and has no empty value: delete the rows, or change them yourself", name, p.Table(), c.kind)
		}
		all = append(all, pgx.Identifier{c.name}.Sanitize()+" = "+value)
	}
	return strings.Join(all, ", "), nil
}
