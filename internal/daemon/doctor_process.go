package daemon

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// cursors reads the rows and notes those that the file does not know.
func (d *doctor) cursors(ctx context.Context) []cursor.Row {
	if d.tableless {
		return nil
	}
	rows, err := d.store.List(ctx)
	if err != nil {
		d.failed("", err)
		return nil
	}
	names := d.config.Names()
	for _, row := range rows {
		if !slices.Contains(names, row.Process) {
			d.find(row.Process, Note, "if no other file runs it, its cursor is left over from a process that was renamed or removed",
				"the cursor is in the database, and the file has no such process: it has %s", strings.Join(names, ", "))
		}
	}
	return rows
}

// process checks one process.
func (d *doctor) process(ctx context.Context, p Process, rows []cursor.Row) error {
	source, err := p.source(d.pool, nil)
	if err != nil {
		return err
	}
	findings, err := source.Inspect(ctx)
	if err != nil {
		return err
	}
	refused := false
	for _, f := range findings {
		d.find(p.Name, Severity(f.Severity), f.Cure, "%s", f.Problem)
		refused = refused || f.Severity == table.Refuse
	}
	if err := d.sink(ctx, p); err != nil {
		d.find(p.Name, Refuse, "mend the sink's statement", "%v", err)
	}
	if d.tableless || refused {
		return nil
	}
	if err := d.position(ctx, p, source, rows); err != nil {
		return err
	}
	return d.settings(ctx, p)
}

const createdSQL = `/* doctor.created */
SELECT EXISTS (SELECT 1 FROM {schema}.cursor_event WHERE process_name = $1 AND action = 'create')`

// position checks that the source understands where the cursor stands, or will.
func (d *doctor) position(ctx context.Context, p Process, source *table.Source, rows []cursor.Row) error {
	at := p.Start
	if i := slices.IndexFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name }); i >= 0 {
		at = rows[i].Position
	} else if !p.StartGiven {
		var created bool
		if err := d.pool.QueryRow(ctx, d.config.sql(createdSQL), p.Name).Scan(&created); err != nil {
			return err
		}
		if created {
			d.find(p.Name, Refuse, "say where to start over with start: beginning, end or a position; or put the row back",
				"its cursor was deleted, and a new one would deliver everything again")
		}
	}
	if at == processor.Beginning || at == processor.End {
		return nil
	}
	if _, err := source.Lag(ctx, at); processor.IsPermanent(err) {
		d.find(p.Name, Refuse, "put the source or the start back to what it was, or name the process anew", "%v", err)
	} else if err != nil {
		return err
	}
	return nil
}

// settings notes that the process last ran as something else: a change on
// purpose looks the same.
func (d *doctor) settings(ctx context.Context, p Process) error {
	last, err := d.config.lastConfigured(ctx, d.pool, p)
	if err != nil || last == nil || maps.Equal(last.settings, p.settings()) {
		return err
	}
	d.find(p.Name, Note, otherConfigurationCure, "worker %s ran it from %s on with another configuration: %s",
		last.worker, last.at.UTC().Format(time.RFC3339), last.difference(p.settings()))
	return nil
}
