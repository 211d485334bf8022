package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// ErrKeep means that one of the partitions asked about is not safe to drop. The output shows which.
var ErrKeep = errors.New("not safe to drop")

// Retention describes which records of one table are not delivered yet.
type Retention struct {
	Table      string
	Readers    []Reader
	Partitions []Part
	// Unknown are cursors whose table is not known.
	Unknown []string
}

// Reader is a process that reads the table, a part of it, or a table above it.
type Reader struct {
	Process string
	// State is the state of its cursor, or why it has none.
	State string
	// First is the first committed record that it has not delivered; nil if there is none.
	First *processor.Record
	// Problem is why it is not known what it has delivered; "" if it is known.
	Problem string

	source *table.Source
	at     cursor.Position
	idle   bool // it needs none of the present records
	// otherwise is why the source of the file does not show what it needs; "" if it does.
	otherwise string
}

// Part is a partition.
type Part struct {
	table.Partition
	// Undelivered is, for each process, the records of the partition that it has yet to deliver.
	Undelivered []Undelivered
	// Writers are open transactions that write to the partition. Their records are not visible yet.
	Writers []table.Writer
	// Problems are why it is not known whether the partition is safe.
	Problems []string

	looked bool // for writers
}

// Undelivered is the number of records of a partition that one process has yet to deliver.
type Undelivered struct {
	Reader
	// Records are counted up to table.MaxUndelivered.
	Records int64
}

// Safe reports whether no process needs the partition.
func (p Part) Safe() bool { return len(p.Undelivered)+len(p.Writers)+len(p.Problems) == 0 }

// Partitions reports, for the partitions of all tables that the processes read, whether they are safe to drop or to
// detach. names restricts it to some of them, spelled as in SQL. An unknown name is a *UsageError.
func Partitions(ctx context.Context, c Config, names []string) ([]Retention, error) {
	return partitions(ctx, c, names, pause)
}

func partitions(ctx context.Context, c Config, names []string, pause func(context.Context, time.Duration)) ([]Retention, error) {
	pool, store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	r := retention{config: c, pool: pool, store: store, pause: pause}
	if err := r.readers(ctx); err != nil {
		return nil, Reachable(err)
	}
	for i := range r.tables {
		if err := r.list(ctx, &r.tables[i]); err != nil {
			return nil, Reachable(err)
		}
	}
	r.relate()
	if err := r.choose(names); err != nil {
		return nil, err
	}
	if err := r.writers(ctx); err != nil { // before the records: the records of a transaction that ends meanwhile are seen there
		return nil, Reachable(err)
	}
	for i := range r.tables {
		r.tables[i].measure(ctx)
		r.tables[i].conceal(c)
	}
	return r.tables, ctx.Err()
}

// retention finds out about all tables.
type retention struct {
	config  Config
	pool    *pgxpool.Pool
	store   *cursor.Store
	tables  []Retention
	unknown []string
	// elsewhere are cursors that the file does not have, and that last read another table, or one that is not certain.
	elsewhere []elsewhere
	moved     []cursor.Moved
	pause     func(context.Context, time.Duration) // between two looks
}

// readers finds the processes that read each table, and their positions: the processes of the file, and those of
// other files whose cursors are in the schema.
func (r *retention) readers(ctx context.Context) error {
	rows, err := r.store.List(ctx)
	if err != nil {
		return err
	}
	if r.moved, err = r.store.Moved(ctx); err != nil {
		return err
	}
	for _, p := range r.config.Processes {
		source, err := r.config.keys(p, r.pool)
		if err != nil {
			return &UsageError{err}
		}
		name, err := source.Name(ctx)
		if err != nil {
			return err
		}
		reader, err := r.reader(ctx, p, rows)
		if err != nil {
			return err
		}
		if reader.otherwise, err = r.ranOtherwise(ctx, p, rows); err != nil {
			return err
		}
		if reader.otherwise != "" {
			reader.Problem = reader.otherwise
		}
		reader.source = source
		r.add(name, reader)
	}
	for _, row := range rows {
		if slices.Contains(r.config.Names(), row.Process) {
			continue
		}
		if err := r.stranger(ctx, row); err != nil {
			return err
		}
	}
	for i := range r.tables {
		r.tables[i].Unknown = r.unknown
	}
	return nil
}

func (r *retention) add(name string, reader Reader) {
	at := slices.IndexFunc(r.tables, func(t Retention) bool { return t.Table == name })
	if at < 0 {
		at = len(r.tables)
		r.tables = append(r.tables, Retention{Table: name})
	}
	r.tables[at].Readers = append(r.tables[at].Readers, reader)
}

// reader returns a process with its position. It sets Problem if rows that were stamped before the cursor must still
// be looked for, or were found: then the process has to deliver more than the records after its cursor.
func (r *retention) reader(ctx context.Context, p Process, rows []cursor.Row) (Reader, error) {
	reader := p.reader(rows)
	at := slices.IndexFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name })
	if at < 0 {
		lost, err := r.store.MayBeLost(ctx)
		if lost {
			reader.idle = false
			reader.Problem = "it has no cursor, and a standby was promoted or the database restored: if it has delivered before, its cursor is lost, and its position with it"
		}
		return reader, err
	}
	if f := rows[at].Failure; f != nil && f.OfServer() {
		reader.Problem = fmt.Sprintf("it is %s, with a failure of class %s: rows before its cursor may be undelivered", rows[at].State, f.Class)
		return reader, nil
	}
	if i := slices.IndexFunc(r.moved, func(m cursor.Moved) bool { return m.Process == p.Name && m.Elsewhere }); i >= 0 {
		reader.Problem = fmt.Sprintf("rows before its cursor may be undelivered: %s. Once you have compared receivers with the table: ordered-dispatcher restored --all --reason …", r.moved[i].Problem())
		return reader, nil
	}
	err := r.store.Promoted(ctx, p.Name)
	var promoted *cursor.PromotedError
	if errors.As(err, &promoted) {
		reader.Problem, err = "rows before its cursor may be undelivered: "+promoted.Error()+toRun(rows[at]), nil
	}
	if err == nil && reader.Problem == "" {
		reader.Problem, err = r.unsettled(ctx, rows[at])
	}
	return reader, err
}

// unsettled returns why rows before a cursor may be undelivered: a partition went away with them, the cursor has passed
// their place, and they may be put back. "" if there is no such partition, or if an operator has decided.
func (r *retention) unsettled(ctx context.Context, row cursor.Row) (string, error) {
	gone, err := undecided(ctx, r.store, row.Process)
	for _, g := range gone {
		if row.Position > g.after {
			return fmt.Sprintf("rows before its cursor may be undelivered: %s. `%s`, with a file that has the process, prints how to send them. If its receiver has them, or they are not wanted: %s",
				g.problem(""), r.config.withFile("ordered-dispatcher doctor -c FILE"), r.config.withFile(seekTo(row.Process, row.Position))), nil
		}
	}
	return "", err
}

// toRun is the next step for a cursor that a worker takes over only once its process runs; "" if it runs.
func toRun(row cursor.Row) string {
	switch row.State {
	case cursor.Paused:
		return ". It is paused, and a worker does that only once it runs: ordered-dispatcher resume " + visible.Shell(row.Process)
	case cursor.Halted:
		return fmt.Sprintf(". It is halted, and a worker does that only once it runs: ordered-dispatcher status %s shows why", visible.Shell(row.Process))
	default:
		return ""
	}
}

// ranOtherwise returns why the source of the file does not show what a process with a cursor needs: the worker that has
// the cursor, or one that was started after it, reads other rows, or in another order. "" if the file has that source, or
// takes more rows.
func (r *retention) ranOtherwise(ctx context.Context, p Process, rows []cursor.Row) (string, error) {
	i := slices.IndexFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name })
	if i < 0 {
		return "", nil
	}
	all, err := r.config.configurations(ctx, r.pool, p.Name)
	if err != nil {
		return "", err
	}
	return otherThan(mayRun(all, rows[i].Holder), func(e earlier) settings { return p.settings(e.settings[saltKey]) }), nil
}

// otherThan returns how one of the configurations, under which a worker may deliver, needs other rows than those of a
// source; "" if none does.
func otherThan(all []earlier, now func(earlier) settings) string {
	for _, e := range all {
		if difference := e.needsOther(now(e)); difference != "" {
			return fmt.Sprintf("worker %s ran it from %s on with another source, so the rows that it needs are not those of this file: %s. "+
				"Give this file the source of the worker's file; or, if this one is right, start all workers of the process with it: one of them takes the cursor over with its next record",
				e.worker, e.at.UTC().Format(time.RFC3339), difference)
		}
	}
	return ""
}

// reader returns a process of the file, with the position from which it goes on, or would start.
func (p Process) reader(rows []cursor.Row) Reader {
	reader := Reader{Process: p.Name, State: "not run yet", at: p.Start}
	if at := slices.IndexFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name }); at >= 0 {
		reader.State = string(rows[at].State)
		if rows[at].Position != cursor.Unplaced {
			reader.at = rows[at].Position
		}
	}
	switch reader.at {
	case processor.End:
		reader.idle = true
	case processor.Beginning:
		reader.at = ""
	}
	return reader
}

// stranger adds a cursor that the file does not have, if it last read one of the tables. Its source.where is text of
// the audit, which is not run: all rows count.
func (r *retention) stranger(ctx context.Context, row cursor.Row) error {
	all, err := r.config.configurations(ctx, r.pool, row.Process)
	if err != nil {
		return err
	}
	all = mayRun(all, row.Holder)
	if len(all) == 0 {
		r.unknown = append(r.unknown, row.Process)
		return nil
	}
	p := Process{Name: row.Process, Source: all[0].settings.source()}
	source, err := r.config.keys(p, r.pool)
	if err != nil {
		r.unknown = append(r.unknown, row.Process)
		return nil
	}
	name, err := source.Name(ctx)
	if err != nil {
		return err
	}
	reader, err := r.reader(ctx, p, []cursor.Row{row})
	if err != nil {
		return err
	}
	whole := all[0].settings.reads()
	delete(whole, "source.where") // all rows count
	if reader.otherwise = otherThan(all[1:], func(earlier) settings { return whole }); reader.otherwise != "" {
		reader.Problem = reader.otherwise
	}
	reader.State += ", not in the file"
	if reader.Problem != "" {
		reader.Problem += fmt.Sprintf(". If no worker runs it because a `process rename` of it was lost: ordered-dispatcher process rename %s NEW", visible.Shell(row.Process))
	}
	reader.source = source
	if !slices.ContainsFunc(r.tables, func(t Retention) bool { return t.Table == name }) {
		r.elsewhere = append(r.elsewhere, elsewhere{name, reader})
		return nil
	}
	r.add(name, reader)
	return nil
}

// elsewhere is a cursor of another file, and the table that it last read; "" if that is not certain.
type elsewhere struct {
	table string
	Reader
}

// source returns the source of these settings, without source.where.
func (s settings) source() table.Config {
	return table.Config{Table: s["source.table"], Order: table.Order(s["source.order"]), Columns: table.Columns{
		ID: s["source.columns.id"], CreatedAt: s["source.columns.created_at"], Key: s["source.columns.key"],
		Type: s["source.columns.type"], Headers: s["source.columns.headers"], Payload: s["source.columns.payload"],
	}}
}

// list finds the partitions of a table.
func (r *retention) list(ctx context.Context, t *Retention) error {
	partitions, err := t.Readers[0].source.Partitions(ctx)
	for _, p := range partitions {
		t.Partitions = append(t.Partitions, Part{Partition: p})
	}
	return err
}

// relate adds the processes that read a part of a table, or a table above it: they share its partitions.
func (r *retention) relate() {
	part := func(t, of Retention) bool {
		return slices.ContainsFunc(of.Partitions, func(p Part) bool { return p.Name() == t.Table })
	}
	readers := make([][]Reader, len(r.tables))
	for i, t := range r.tables {
		readers[i] = slices.Clone(t.Readers)
		for _, other := range r.tables {
			if part(t, other) || part(other, t) {
				readers[i] = append(readers[i], other.Readers...)
			}
		}
	}
	for i := range r.tables {
		r.tables[i].Readers = readers[i]
	}
}

// choose keeps the partitions that are named, and their tables.
func (r *retention) choose(names []string) error {
	if len(names) == 0 {
		return nil
	}
	var tables []string
	for _, t := range r.tables {
		tables = append(tables, t.Table)
	}
	for _, name := range names {
		switch meant := r.named(name); len(meant) {
		case 0:
			return usage("%s is not a partition of a table that the processes read (%s)", name, oneOf(tables))
		case 1:
		default:
			return usage("%s may be %s: name it with its schema", name, strings.Join(meant, " or "))
		}
	}
	for i := range r.tables {
		r.tables[i].Partitions = slices.DeleteFunc(r.tables[i].Partitions, func(p Part) bool { return !slices.ContainsFunc(names, p.Named) })
	}
	r.tables = slices.DeleteFunc(r.tables, func(t Retention) bool { return len(t.Partitions) == 0 })
	return nil
}

// named returns the partitions that a name may mean. A partition may be below two tables.
func (r *retention) named(name string) (meant []string) {
	for _, t := range r.tables {
		for _, p := range t.Partitions {
			if p.Named(name) && !slices.Contains(meant, p.Name()) {
				meant = append(meant, p.Name())
			}
		}
	}
	return meant
}

// writers finds the transactions that write to partitions and do not end within a moment.
func (r *retention) writers(ctx context.Context) error {
	if found, err := r.look(ctx); err != nil || !found {
		return err
	}
	r.pause(ctx, stays)
	_, err := r.look(ctx)
	return err
}

// look finds the writers of each partition. From the second time on, it keeps only those that are still there. It
// reports whether there is one.
func (r *retention) look(ctx context.Context) (found bool, err error) {
	for _, t := range r.tables {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			now, err := t.Readers[0].source.PartitionWriters(ctx, p.Partition)
			if err != nil {
				return false, err
			}
			if p.looked {
				now = stayed(p.Writers, now)
			}
			p.Writers, p.looked = now, true
			found = found || len(now) > 0
		}
	}
	return found, nil
}

// measure finds out what each process has yet to deliver. A process without a waiting record needs no partition,
// except perhaps one that is being detached.
func (t *Retention) measure(ctx context.Context) {
	for i := range t.Readers {
		reader := &t.Readers[i]
		if reader.idle {
			continue
		}
		if reader.Problem == "" {
			var err error
			if reader.First, err = reader.source.First(ctx, reader.at); err != nil {
				reader.Problem = err.Error()
			}
		}
		for j := range t.Partitions {
			if reader.First != nil || reader.Problem != "" || t.Partitions[j].Detaching {
				t.Partitions[j].measure(ctx, *reader)
			}
		}
	}
}

func (p *Part) measure(ctx context.Context, reader Reader) {
	if reader.Problem != "" {
		p.Problems = append(p.Problems, fmt.Sprintf("%s: %s", reader.Process, reader.Problem))
		return
	}
	records, err := reader.source.Undelivered(ctx, reader.at, p.Partition)
	switch {
	case err != nil:
		p.Problems = append(p.Problems, fmt.Sprintf("%s: %v", reader.Process, err))
	case records > 0:
		p.Undelivered = append(p.Undelivered, Undelivered{reader, records})
	}
}

// conceal removes secrets from the messages of a server.
func (t *Retention) conceal(c Config) {
	secrets := c.Secrets()
	for i := range t.Readers {
		t.Readers[i].Problem = secrets.Replace(t.Readers[i].Problem)
	}
	for _, p := range t.Partitions {
		for i := range p.Problems {
			p.Problems[i] = secrets.Replace(p.Problems[i])
		}
	}
}

// Keep returns ErrKeep with the partitions that are not safe; nil if all are.
func Keep(all []Retention) error {
	var kept []string
	for _, t := range all {
		for _, p := range t.Partitions {
			if !p.Safe() && !slices.Contains(kept, p.Name()) {
				kept = append(kept, p.Name())
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrKeep, oneOf(kept))
}
