package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// cursors reads the rows, and checks them for faults that do not depend on their source.
func (d *doctor) cursors(ctx context.Context) (rows []cursor.Row) {
	if d.tableless {
		return nil
	}
	d.tableless = !d.check(ctx, "", func(ctx context.Context) (err error) {
		rows, err = d.store.List(ctx)
		return err
	})
	if d.tableless {
		return nil
	}
	d.unlisted(ctx, rows)
	d.restored(rows)
	d.check(ctx, "", d.lockers)
	d.check(ctx, "", func(ctx context.Context) error { return d.identity(ctx, rows) })
	return rows
}

// restored warns if cursors of some processes went back: the others may have lost as much.
func (d *doctor) restored(rows []cursor.Row) {
	for _, row := range rows {
		switch f := row.Failure; {
		case f == nil:
		case f.Class == cursor.ClassOldPrimary:
			d.find(row.Process, Warn, "fence this server, and make no decision here, unless you know that it is the only primary", "the server may be an old primary: %s", f.Error)
		case f.Restored():
			d.find(row.Process, Warn, "ordered-dispatcher restored --all --reason …, once you have compared receivers with the table", "the database was restored, and no operator has decided yet: %s", f.Error)
		}
	}
}

// unlisted notes cursors that the file does not have.
func (d *doctor) unlisted(ctx context.Context, rows []cursor.Row) {
	watched, _ := d.config.presence(ctx, d.pool) // without the right, nobody is known to run them
	for _, name := range unlisted(d.config, rows) {
		if watched[name].live {
			d.find(name, Note, "", "the cursor is of another file, whose worker runs now")
			continue
		}
		d.find(name, Note, fmt.Sprintf("if no other file runs it: `ordered-dispatcher process rename %s NEW` if the process has another name now, "+
			"`ordered-dispatcher process forget %[1]s --reason …` if there is none any more", visible.Shell(name)),
			"the cursor is in the database, and the file has no such process: it has %s", oneOf(d.config.Names()))
	}
}

// lockers finds transactions of other sessions that hold the row of a process.
func (d *doctor) lockers(ctx context.Context) error {
	lockers, err := d.store.Lockers(ctx)
	if err != nil {
		return err
	}
	if d.long, err = longHolders(ctx, d.store, lockers, pause); err != nil {
		return err
	}
	now, err := databaseTime(ctx, d.pool)
	if err != nil {
		return err
	}
	for _, l := range lockers {
		if !l.Worker() || l.Torn() {
			d.find(l.Process, heldFor(l.Since, now), l.Fix(), "its row is locked by %s, and no worker can deliver until that ends", l)
		}
	}
	for _, l := range d.long.operators {
		fix := l.Fix()
		if l.TimesHiddenFrom != "" {
			fix, _ = adviceOn(l) // SQL would need those times
		}
		d.find(l.Process, heldFor(l.Since, now), fix, "its row is locked by an operator's session, %s, and no worker can deliver until that ends", l)
	}
	return nil
}

const nowSQL = `/* doctor.now */ SELECT pg_catalog.clock_timestamp()`

// databaseTime returns the database's time.
func databaseTime(ctx context.Context, pool *pgxpool.Pool) (now time.Time, err error) {
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error { return tx.QueryRow(ctx, nowSQL, binary).Scan(&now) })
	return now, err
}

// longHeld is how long a transaction may hold up delivery before that is worse than a note.
const longHeld = 10 * time.Second

// heldFor returns how bad it is that a transaction is open since a time. If the role may not see that time, it claims
// nothing.
func heldFor(since, now time.Time) Severity {
	if since.IsZero() || now.Sub(since) < longHeld {
		return Note
	}
	return Warn
}

// identity finds positions that came here with a copy of the database.
func (d *doctor) identity(ctx context.Context, rows []cursor.Row) error {
	all, err := d.store.Moved(ctx)
	for _, m := range all {
		halted := slices.ContainsFunc(rows, func(row cursor.Row) bool {
			return row.Process == m.Process && row.State == cursor.Halted && row.Displaced()
		})
		switch {
		case m.Elsewhere:
			d.find(m.Process, Refuse, fmt.Sprintf("compare what receivers have with the table; a worker halts the process, "+
				"and `ordered-dispatcher retry %s` lets it go on from its cursor", visible.Shell(m.Process)), "%s", m.Problem())
		case halted: // its failure has more detail
		case m.From == cursor.RestoredTimeline:
			d.find(m.Process, Note, "", "it goes on after a restore: a worker looks at its next round for rows that were stamped before the cursor")
		case m.From <= 0:
			d.find(m.Process, Note, "", "it halted over the server's clock and was tried again: a worker looks at its next round for rows that were stamped before the cursor")
		default:
			d.find(m.Process, Note, "", "a standby was promoted since its last change of worker (timeline %d, now %d): if it had not received everything, "+
				"receivers have records that are gone, and ids are used again", m.From, m.To)
		}
	}
	return err
}

// process checks one process.
func (d *doctor) process(ctx context.Context, p Process, rows []cursor.Row) error {
	source, err := d.config.source(p, d.pool, nil)
	if err != nil {
		return err
	}
	findings, err := source.Inspect(ctx)
	if err != nil {
		return err
	}
	d.pass(p, findings)
	refused := slices.ContainsFunc(findings, func(f table.Finding) bool { return f.Severity == table.Refuse })
	if err := d.sink(ctx, p); err != nil {
		return err
	}
	if d.tableless || refused {
		return nil
	}
	if findings, err = source.InspectPartitions(ctx); err != nil {
		return err
	}
	d.pass(p, findings)
	if err := d.days(ctx, p, source); err != nil {
		return err
	}
	if err := d.position(ctx, p, source, rows); err != nil {
		return err
	}
	s, err := d.standing(ctx, p, source, rows)
	if err != nil {
		return err
	}
	if err := d.held(ctx, p, source, s); err != nil {
		return err
	}
	if err := d.pins(ctx, p, s); err != nil {
		return err
	}
	if sink, ok := p.Sink.Config.(recorder); ok {
		if err := d.writtenTo(ctx, p.Name, sink.table.Sanitize(), source); err != nil {
			return err
		}
	}
	return d.settings(ctx, p)
}

// pass adds the findings of a source to the doctor's own.
func (d *doctor) pass(p Process, findings []table.Finding) {
	for _, f := range findings {
		d.find(p.Name, Severity(f.Severity), f.Fix, "%s", f.Problem)
	}
}

// position checks that the source understands the position where the cursor is, or will be.
func (d *doctor) position(ctx context.Context, p Process, source *table.Source, rows []cursor.Row) error {
	at := p.Start
	i := slices.IndexFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name })
	if i >= 0 {
		at = rows[i].Position
	} else if err := errors.Join(d.creation(ctx, p, source), d.lacks(ctx, p, source)); err != nil {
		return err
	}
	first := at == "" || at == processor.Beginning
	if at == processor.Beginning || at == processor.End || at == cursor.Unplaced {
		at = ""
	}
	findings, err := source.InspectRows(ctx, at)
	if processor.IsPermanent(err) {
		d.find(p.Name, Refuse, "put the source or the start back to what it was, or give the process a new name", "%v", err)
		return nil
	}
	d.pass(p, findings)
	if err == nil && first {
		findings, err = source.InspectOldest(ctx)
		d.pass(p, findings)
	}
	if err == nil && i >= 0 {
		err = d.gone(ctx, p, source, rows[i])
	}
	if err != nil || i < 0 || at == "" {
		return err // it has not delivered anything yet
	}
	findings, err = source.Detached(ctx, at)
	d.pass(p, findings)
	return err
}

// creation checks that a worker can make the cursor of a process, and knows where it begins.
func (d *doctor) creation(ctx context.Context, p Process, source *table.Source) error {
	if err := d.missing(ctx, p.Name, operator.New(d.store).Needs(operator.DutyCreate)); err != nil {
		return err
	}
	var noStart processor.NoStartError
	if p.Start == "" {
		records, more, err := source.Count(ctx)
		if err != nil {
			return err
		}
		noStart = processor.NoStartError{Process: p.Name, Records: records, More: more}
	}
	// Past comes last: so it sees a row that the first worker made after the rows were read.
	switch past := d.store.Past(ctx, p.Name); {
	case errors.Is(past, cursor.ErrExists):
		return nil
	case errors.Is(past, cursor.ErrRenamed):
		d.find(p.Name, Refuse, underItsNewName(p.Name), "%v", past)
		return nil
	case errors.Is(past, cursor.ErrDeleted):
		d.find(p.Name, Refuse, "put the row back, or give the cursor up: ordered-dispatcher process forget "+visible.Shell(p.Name)+" --reason …", "%v", past)
		return nil
	case past != nil:
		return past
	}
	if _, same := d.config.earlierNames(ctx, d.pool, p); p.Start != "" && len(same) > 0 {
		d.find(p.Name, Refuse, "", "%v", newNameError(p, same))
	}
	if lost, err := d.store.MayBeLost(ctx); err != nil || lost {
		if lost {
			d.mayBeLost(p, noStart.Records > 0)
		}
		return err
	}
	if noStart.Records == 0 {
		return nil
	}
	d.find(p.Name, Refuse, fmt.Sprintf("add `start: beginning`, which sends %s, or `start: end`, which sends 0 of them; "+
		"or, to take over from another program, the position that `ordered-dispatcher adopt` finds; or, if the process had another name: ordered-dispatcher process rename OLD %s", noStart.Count(), visible.Shell(p.Name)),
		"it has no cursor yet, and the file does not say where it starts")
	return nil
}

// lacks notes that retention has removed records from the start of a process on. A start sends what is there, so it is not
// refused as a seek is. A role that may not read how far rows are gone gets no note.
func (d *doctor) lacks(ctx context.Context, p Process, source *table.Source) error {
	if p.Start == processor.End {
		return nil
	}
	read, err := reading(ctx, source)
	if err != nil || read.Table == "" {
		return err
	}
	all, err := operator.New(d.store).PrunedAround(ctx, read)
	if denied(err) {
		return nil
	}
	i := slices.IndexFunc(all, func(gone operator.Pruned) bool {
		return p.Start == "" || p.Start == processor.Beginning || !gone.Apart && p.Start < gone.Through
	})
	if i >= 0 {
		d.find(p.Name, Note, "put them back before it starts, if its receiver needs them", "it has no cursor yet, and starts with what the table holds: %s", all[i])
	}
	return err
}

// mayBeLost warns that a process without a cursor may have had one. run refuses to begin it if the file does not set
// start and the table holds records.
func (d *doctor) mayBeLost(p Process, refused bool) {
	severity := Warn
	if refused {
		severity = Refuse
	}
	d.find(p.Name, severity, fmt.Sprintf("compare what its receiver has with the table, and make the cursor at the first row that it does not have, before a worker starts: "+
		"ordered-dispatcher seek %s --to-id ID -c FILE --reason …; or, if the process has never run, start it, with `start` in the file", visible.Shell(p.Name)),
		"it has no cursor, and a standby was promoted or the database restored: if it has delivered before, its cursor is lost")
}

// settings notes that the process last ran with other settings. A change on purpose looks the same.
func (d *doctor) settings(ctx context.Context, p Process) error {
	last, err := d.config.lastConfigured(ctx, d.pool, p.Name)
	if err != nil || last == nil || last.difference(p.settings(last.settings[saltKey])) == "" {
		return err
	}
	d.find(p.Name, Note, otherConfigurationFix, "worker %s ran it from %s on with another configuration: %s",
		last.worker, last.at.UTC().Format(time.RFC3339), last.difference(p.settings(last.settings[saltKey])))
	return nil
}
