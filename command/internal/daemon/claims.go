package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Collection is which objects of claim checks are to be collected.
type Collection struct {
	// OlderThan is how long ago they were put, at least a minute.
	OlderThan time.Duration
	// Also are tables that may refer to objects, besides those that are known.
	Also []string
	// Fate is DeleteObject or LeaveObject.
	Fate func(context.Context, claim.Store, claim.Object) error
}

// DeleteObject is the Fate of objects that are removed.
func DeleteObject(ctx context.Context, store claim.Store, o claim.Object) error {
	if err := store.Delete(ctx, o.Name); err != nil {
		return fmt.Errorf("remove an object: %w", err)
	}
	return nil
}

// LeaveObject is the Fate of objects that are only counted.
func LeaveObject(context.Context, claim.Store, claim.Object) error { return nil }

// Collected is what met its fate in one store.
type Collected struct {
	Store string // as the file has it
	claim.Removed
}

// CollectClaims finds the objects of claim checks to which no row refers, in each store of the file. All tables that a
// cursor of this database reads may refer to them, and archives, dead letters, and c.Also. It refuses while a cursor is
// there whose table is not known, and in what may be a copy of the database. The result is valid also with an error.
func CollectClaims(ctx context.Context, config Config, c Collection) ([]Collected, error) {
	stores := config.claimStores()
	defer config.stores.close()
	switch {
	case len(stores) == 0:
		return nil, usage("no process of the file has the key claims, which names the store of claim checks")
	case c.OlderThan < time.Minute:
		return nil, usage("--older-than must be at least 1m and longer than any transaction that writes records, got %v", c.OlderThan)
	}
	pool, store, err := config.open(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	found := retention{config: config, pool: pool, store: store, pause: pause}
	if err := found.readers(ctx); err != nil {
		return nil, Reachable(err)
	}
	if err := found.certain(); err != nil {
		return nil, err
	}
	if err := found.original(ctx); err != nil {
		return nil, Reachable(err)
	}
	rows, err := found.referring(ctx, c.Also)
	if err != nil {
		return nil, Reachable(err)
	}
	var all []Collected
	var errs []error
	for _, where := range stores {
		done := Collected{Store: where}
		objects := lazyObjects{config.stores, where}
		err := outbox.Orphans(ctx, pool, objects, c.OlderThan, rows, func(o claim.Object) error {
			if err := c.Fate(ctx, objects, o); err != nil {
				return err
			}
			done.Objects++
			done.Bytes += o.Bytes
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("collect in %s: %w", visible.Line(where), err))
		}
		all = append(all, done)
	}
	return all, Reachable(errors.Join(errs...))
}

// original refuses in what may be a copy of the database: the rows that refer to the objects may be elsewhere. An old
// primary that is started again has the cursors of before, and shows nothing.
func (r *retention) original(ctx context.Context) error {
	var all []error
	refuse := func(process, problem string) {
		all = append(all, fmt.Errorf("nothing was removed: process %s: %s", visible.Line(process), problem))
	}
	for _, m := range r.moved {
		switch {
		case m.Elsewhere:
			refuse(m.Process, m.Problem())
		case m.Promoted():
			refuse(m.Process, fmt.Sprintf("the server's timeline was %d and is %d, and no worker has noted that: a standby was promoted, or this is a server that was restored", m.From, m.To))
		}
	}
	rows, err := r.store.List(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if f := row.Failure; f != nil && f.Restored() && !slices.ContainsFunc(r.moved, func(m cursor.Moved) bool { return m.Process == row.Process }) {
			refuse(row.Process, f.Error)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w. If this is a copy, the objects belong to another database: give its file a store of its own. "+
		"If this database is the one that goes on: ordered-dispatcher restored --all --reason …", errors.Join(all...))
}

// claimStores returns each store of claim checks once.
func (c Config) claimStores() (all []string) {
	for _, p := range c.Processes {
		if p.Claims != "" && !slices.Contains(all, p.Claims) {
			all = append(all, p.Claims)
		}
	}
	return all
}

// referring returns the columns with headers of all tables that may refer to objects. An archive may have those of any
// process: one that reads a part of its rule's table alone, also after a DETACH of that part.
func (r *retention) referring(ctx context.Context, also []string) (all []outbox.Headers, err error) {
	var columns []string
	for _, e := range r.all() {
		column, err := r.headersColumn(ctx, e.Process)
		if err != nil {
			return nil, err
		}
		found, err := headersOf(ctx, r.pool, e.table, column)
		if err != nil {
			return nil, fmt.Errorf("process %s: %w", visible.Line(e.Process), err)
		}
		if len(found) > 0 { // a table without such a column is not read
			if err := r.trusted(ctx, e, also); err != nil {
				return nil, err
			}
		}
		if len(found) == 0 && r.config.claims(e.Process) {
			return nil, usage("process %s has claims, and no column of %s is known to have headers: set source.columns.headers", visible.Line(e.Process), visible.Line(e.table))
		}
		all, columns = append(all, found...), append(columns, column)
	}
	for _, rule := range r.config.Rules {
		if rule.Archive == "" {
			continue
		}
		found, err := headersOf(ctx, r.pool, rule.Archive, "", columns...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, table := range also {
		found, err := headersOf(ctx, r.pool, table, "")
		if err == nil && len(found) == 0 {
			err = usage("it has no column headers of type json or jsonb")
		}
		if err != nil {
			return nil, fmt.Errorf("--also %s: %w", visible.Line(table), err)
		}
		all = append(all, found...)
	}
	letters, err := headersOf(ctx, r.pool, r.config.name("dead_letter"), "")
	return append(all, letters...), err
}

// trusted refuses to read a table of a stranger that only the audit names, unless the operator names it, too: a worker may
// write any name there. To read a table runs code of its owner: an index on an expression is enough.
func (r *retention) trusted(ctx context.Context, e elsewhere, also []string) error {
	var named []string
	for _, t := range r.tables {
		named = append(named, t.Table)
	}
	if slices.Contains(named, e.table) || slices.Contains(also, e.table) {
		return nil
	}
	owned, owner, err := r.config.stranger(ctx, r.pool, e.table, named)
	if err == nil && owner != "" {
		err = usage("process %s last read %s, and role %s, which owns %s, has no table of this file: to read it would run code of that role with the rights of this one. "+
			"If you trust that role: --also %s", visible.Line(e.Process), visible.Line(e.table), quoted(owner), visible.Line(owned), visible.Shell(e.table))
	}
	return err
}

// all returns each cursor with the table that it reads.
func (r *retention) all() []elsewhere {
	all := slices.Clone(r.elsewhere)
	for _, t := range r.tables {
		for _, reader := range t.Readers {
			all = append(all, elsewhere{t.Table, reader})
		}
	}
	return all
}

// headersColumn returns the column with headers that a process has, or last had; "" if it has none.
func (r *retention) headersColumn(ctx context.Context, process string) (string, error) {
	if i := r.config.index(process); i >= 0 {
		return r.config.Processes[i].Source.Named().Columns.Headers, nil
	}
	last, err := r.config.lastConfigured(ctx, r.pool, process)
	if err != nil || last == nil {
		return "", err
	}
	return last.settings.source().Columns.Headers, nil
}

// claims reports whether the file resolves the claim checks of a process.
func (c Config) claims(process string) bool {
	i := c.index(process)
	return i >= 0 && c.Processes[i].Claims != ""
}

// index returns the place of a process in the file; -1 if it is not there.
func (c Config) index(process string) int {
	return slices.IndexFunc(c.Processes, func(p Process) bool { return p.Name == process })
}

// headersSQL finds the columns of a table with one of some names. A partition has those of the whole table, because
// the other partitions may refer to the same objects.
const headersSQL = `/* daemon.headers */
SELECT
	c.oid,
	c.relkind IN ('r', 'p'),
	n.nspname,
	c.relname,
	coalesce(a.attname, ''),
	coalesce(format_type(a.atttypid, NULL), '')
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY ($2::text[])
WHERE c.oid = coalesce(pg_partition_root(to_regclass($1)), to_regclass($1))
ORDER BY a.attname
LIMIT 2000`

// headersOf returns the columns of a table that may have headers: the configured one, headers, and others that are a json
// or a jsonb. Tables with rows of it that no read of it sees follow: they may be attached again.
func headersOf(ctx context.Context, pool *pgxpool.Pool, of, configured string, others ...string) (all []outbox.Headers, err error) {
	var oid uint32
	var schema, name, column, typ string
	var known, stored bool
	if of == "" {
		return nil, usage("it is not certain which table is meant: run doctor")
	}
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, headersSQL, binary, of, append([]string{"headers", configured}, others...))
		_, err := pgx.ForEachRow(rows, []any{&oid, &stored, &schema, &name, &column, &typ}, func() error {
			known = true
			switch {
			case !stored && (typ == "json" || typ == "jsonb"):
				return usage("%s is not a table: references to claim checks are only looked for in tables", visible.Line(of))
			case typ == "json" || typ == "jsonb":
				all = append(all, outbox.Headers{Table: pgx.Identifier{schema, name}, Column: column})
			case column == configured && column != "":
				return usage("column %s of %s is %s: references to claim checks can only be looked for in json and jsonb", quoted(column), visible.Line(of), typ)
			}
			return nil
		})
		if err != nil || len(all) == 0 {
			return err
		}
		unread, err := table.Unread(ctx, tx, oid)
		whole := all
		for _, part := range unread {
			for _, h := range whole {
				all = append(all, outbox.Headers{Table: part, Column: h.Column})
			}
		}
		return err
	})
	if err == nil && !known {
		err = usage("there is no table %s: write it with its schema", visible.Line(of))
	}
	return all, err
}

// PrintCollected writes the result of a collection for people.
func PrintCollected(w io.Writer, all []Collected, verb string) error {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s: %s %s, %s\n", visible.Line(c.Store), amount(c.Objects, "object"), verb, amount(int(c.Bytes), "byte"))
	}
	_, err := io.WriteString(w, visible.Text(b.String()))
	return err
}
