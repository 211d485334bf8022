package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Need is what one process still needs of a table: the records after a position that its source takes.
type Need struct {
	Process string
	// Source reads the table, a part of it, or a table above it.
	Source *Source
	// After is the position of its cursor; "" is before the first record.
	After cursor.Position
	// None: it needs no record that is there now.
	None bool
}

// Pruning removes rows of a source's table that no process needs, in transactions of its caller. It holds what the
// catalog says of the table at the time of its making.
type Pruning struct {
	source *Source
	layout *layout
	keep   time.Duration
	needs  []need
	orders []need // one for each order in which a process reads
	member string // the SQL of the oid of the table that has a row
}

// need is a Need with the layout of its source.
type need struct {
	Need
	layout *layout
	// part: the table of the rule has rows that its source does not read.
	part bool
}

// Pruning prepares the removal of rows that are older than keep. It returns ErrNoTime if the source reads no
// created_at, which shows how old a row is. The positions of needs may change later: see Settle.
func (s *Source) Pruning(ctx context.Context, keep time.Duration, needs []Need) (*Pruning, error) {
	p := &Pruning{source: s, keep: keep}
	var err error
	if p.layout, err = s.described(ctx); err != nil {
		return nil, err
	}
	if p.layout.at == "" {
		return nil, fmt.Errorf("%w of %s: a rule of retention needs it to know how old a row is", ErrNoTime, p.layout.name())
	}
	p.orders = []need{{Need: Need{Source: s}, layout: p.layout}}
	for _, n := range needs {
		l, err := n.Source.described(ctx)
		if err != nil {
			return nil, fmt.Errorf("process %q: %w", n.Process, err)
		}
		part, err := s.readsPart(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("process %q: %w", n.Process, err)
		}
		p.needs = append(p.needs, need{n, l, part})
		order := need{Need: Need{Source: n.Source}, layout: l}
		if !slices.ContainsFunc(p.orders, func(o need) bool { return o.ordering() == order.ordering() }) {
			p.orders = append(p.orders, order)
		}
	}
	parted, err := s.Parted(ctx)
	p.member = fmt.Sprint(p.layout.oid)
	if parted { // else no role needs the right
		p.member = "t." + MemberColumn
	}
	return p, err
}

// MemberColumn shows which of the tables below a Parted one has a row. A removal reads it.
const MemberColumn = "tableoid"

const partedSQL = `/* source.parted */ SELECT EXISTS (SELECT FROM pg_inherits WHERE inhparent = %d)`

// Parted reports whether other tables are below the source's one, such as partitions.
func (s *Source) Parted(ctx context.Context) (is bool, err error) {
	err = s.ask(ctx, "look for partitions of", func(l *layout, ask asker) error {
		found, err := ask(fmt.Sprintf(partedSQL, l.oid))
		is = err == nil && string(found[0][0]) == "t"
		return err
	})
	return is, err
}

const readsPartSQL = "/* source.reads_part */" + treeSQL + `
SELECT NOT EXISTS (SELECT FROM tree WHERE oid = %[2]d)`

// readsPart reports whether a reader of another table does not read all rows of the source's one.
func (s *Source) readsPart(ctx context.Context, reader *layout) (is bool, err error) {
	err = s.ask(ctx, "look for the tables of a process below", func(l *layout, ask asker) error {
		if l.oid == reader.oid {
			return nil
		}
		found, err := ask(fmt.Sprintf(readsPartSQL, reader.oid, l.oid))
		is = err == nil && string(found[0][0]) == "t"
		return err
	})
	return is, err
}

// Ordering names the order of the records: the kind of its positions, and its columns. Two columns may have positions of
// one kind, which look comparable and are not.
func (s *Source) Ordering(ctx context.Context) (string, error) {
	l, err := s.described(ctx)
	if err != nil {
		return "", err
	}
	return need{Need: Need{Source: s}, layout: l}.ordering(), nil
}

// Whole reports that the source takes every row of its table: it has no Config.Where.
func (s *Source) Whole() bool { return s.config.Where == "" }

func (n need) ordering() string {
	columns := quote(n.Source.config.Columns.ID)
	if n.layout.ordersByTime() {
		columns = quote(n.layout.at) + ", " + columns
	}
	return string(n.layout.kind) + " " + columns
}

func (s *Source) described(ctx context.Context) (*layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(ctx)
}

// Settle sets the positions of the needs, as they are in the transaction that removes rows. change gets each of them.
func (p *Pruning) Settle(change func(*Need)) {
	for i := range p.needs {
		change(&p.needs[i].Need)
	}
}

// Table returns the name of the table, with its schema.
func (p *Pruning) Table() string { return qualify(p.layout.schema, p.layout.table) }

// Stretch is a run of rows, in the order of the source, that no process needs and that are old enough.
type Stretch struct {
	// After is the position after which it begins; "": at the first row. First and Last are its own.
	After, First, Last cursor.Position
	Rows               int
	// Full: there may be more such rows after it.
	Full bool
	// Stop is the first row that must stay; nil if there is none, or if Full.
	Stop *Stop
}

// Stop is a row that must stay.
type Stop struct {
	// Record has no key, type, headers and payload.
	Record processor.Record
	// Young: it is not old enough.
	Young bool
	// Stamp is its created_at if that is NULL, infinite, before Christ, or more than a minute in the future; else "".
	Stamp string
	// By are the processes that need it.
	By []string
}

// values collects the parameters of a statement.
type values [][]byte

// add returns the number of the first of the parameters that are added.
func (v *values) add(more ...[]byte) int {
	*v = append(*v, more...)
	return len(*v) - len(more) + 1
}

// old is the condition for a row that is old enough. It is one time for all statements of a transaction.
func (p *Pruning) old(v *values) string {
	at := "t." + quote(p.layout.at)
	n := v.add(p.interval())
	return fmt.Sprintf("(isfinite(%s) AND %[1]s < %s - $%d::interval)", at, p.now(), n)
}

// now is the time of the transaction, as created_at has it.
func (p *Pruning) now() string {
	if p.layout.atType == "timestamp" {
		return "(now() AT TIME ZONE 'UTC')"
	}
	return "now()"
}

// stamp is the SQL of Stop.Stamp. A minute is for a producer whose clock is ahead.
func (p *Pruning) stamp() string {
	at := "t." + quote(p.layout.at)
	return fmt.Sprintf("CASE WHEN (isfinite(%s) AND %[1]s BETWEEN '0001-01-01' AND %s + interval '1 minute') IS NOT TRUE THEN coalesce(%[1]s::text, 'NULL') ELSE '' END", at, p.now())
}

// needed is the condition for a row that a process needs: an index range, and its source.where.
func (n need) needed(v *values) (string, error) {
	if n.None {
		return "false", nil
	}
	var conditions []string
	if n.part {
		conditions = append(conditions, fmt.Sprintf("t."+MemberColumn+" IN ("+treeSQL+" SELECT oid FROM tree)", n.layout.oid))
	}
	if n.After != "" {
		k, err := n.layout.kind.parse(n.After)
		if err != nil {
			return "", fmt.Errorf("process %q: %w", n.Process, err)
		}
		conditions = append(conditions, n.layout.beyond(n.Source.config, v.add(n.layout.arguments(k)...)))
	}
	if n.layout.ordersByTime() {
		conditions = append(conditions, fmt.Sprintf("t.%s < 'infinity'", quote(n.layout.at)))
	}
	if where := n.Source.config.Where; where != "" {
		conditions = append(conditions, "(\n"+where+"\n)") // a newline ends a comment
	}
	if len(conditions) == 0 {
		return "true", nil
	}
	return strings.Join(conditions, " AND "), nil
}

// spared is the condition for a row that a process does not need.
func (n need) spared(v *values) (string, error) {
	needed, err := n.needed(v)
	return "((" + needed + ") IS NOT TRUE)", err
}

// beyond is the condition for a row after the position in the parameters from $n on.
func (l *layout) beyond(c Config, n int) string {
	return fmt.Sprintf("(%s) > (%s)", strings.Join(l.orderBy(c), ", "), l.tuple(n))
}

// prunableSQL reads the first rows after a position, by index range: keys, sizes, stamps that are none, and whether each
// condition holds.
const prunableSQL = `/* source.prunable */
SELECT %s, %s, %s, %s
FROM %s AS t
WHERE %s
ORDER BY %s
LIMIT %d`

// Look finds the rows after a position that may go, at most limit. Unless maxBytes is 0, it also bounds their size, as
// the table stores them, but finds at least one; that needs the right to read all columns. It takes no lock that a writer needs, and is no writer for the fence.
func (p *Pruning) Look(ctx context.Context, tx pgx.Tx, after cursor.Position, limit, maxBytes int) (s Stretch, err error) {
	var v values
	l, c := p.layout, p.source.config
	from := "true"
	if after != "" {
		k, err := l.kind.parse(after)
		if err != nil {
			return Stretch{}, err
		}
		from = l.beyond(c, v.add(l.arguments(k)...))
	}
	conditions := []string{p.old(&v)}
	for _, n := range p.needs {
		spared, err := n.spared(&v)
		if err != nil {
			return Stretch{}, err
		}
		conditions = append(conditions, spared)
	}
	size := "0"
	if maxBytes > 0 {
		size = "pg_column_size(t.*)"
	}
	found, err := run(ctx, tx, fmt.Sprintf(prunableSQL, l.keys(c), size, p.stamp(), strings.Join(conditions, ", "), l.sql(), from, strings.Join(l.orderBy(c), ", "), limit), v)
	if err != nil {
		return Stretch{}, err
	}
	return p.stretch(after, found.Rows, limit, maxBytes)
}

// stretch takes the rows up to the first that must stay.
func (p *Pruning) stretch(after cursor.Position, rows [][][]byte, limit, maxBytes int) (s Stretch, err error) {
	s = Stretch{After: after, Full: len(rows) == limit}
	bytes := 0
	for _, values := range rows {
		record, err := p.layout.record(values[:2])
		if err != nil { // as infinity; it has no place among the others
			s.Stop, s.Full = &Stop{Record: processor.Record{Table: p.layout.name(), ID: string(values[0])}, Young: true, Stamp: string(values[3])}, false
			return s, nil
		}
		if stop := p.stop(record, values[4:]); stop != nil {
			stop.Stamp = string(values[3])
			s.Stop, s.Full = stop, false
			return s, nil
		}
		size, err := strconv.Atoi(string(values[2]))
		if err != nil {
			return s, err
		}
		if bytes += size; bytes > maxBytes && s.Rows > 0 {
			s.Full = true
			return s, nil
		}
		if s.Rows == 0 {
			s.First = record.Position
		}
		s.Last = record.Position
		s.Rows++
	}
	return s, nil
}

// record makes a record of keys.
func (l *layout) record(values [][]byte) (processor.Record, error) {
	records, err := l.found([][][]byte{values}, nil)
	if err != nil || len(records) == 0 {
		return processor.Record{}, errors.Join(err, errors.New("a row has no position"))
	}
	return records[0], nil
}

// stop returns why a row must stay; nil if it may go.
func (p *Pruning) stop(record processor.Record, may [][]byte) *Stop {
	stop := Stop{Record: record, Young: string(may[0]) != "t"}
	for i, n := range p.needs {
		if string(may[i+1]) != "t" {
			stop.By = append(stop.By, n.Process)
		}
	}
	if !stop.Young && len(stop.By) == 0 {
		return nil
	}
	return &stop
}

// within is the condition for the rows of a stretch that may go, in the snapshot of the statement that has it.
func (p *Pruning) within(v *values, s Stretch) (string, error) {
	conditions, err := p.bounds(v, s)
	if err != nil {
		return "", err
	}
	conditions = append(conditions, p.old(v))
	for _, n := range p.needs {
		spared, err := n.spared(v)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, spared)
	}
	return strings.Join(conditions, "\n\tAND "), nil
}

// bounds are the conditions for the rows of a stretch. Those on the time alone let the planner leave out partitions.
func (p *Pruning) bounds(v *values, s Stretch) (conditions []string, err error) {
	l, c := p.layout, p.source.config
	first, err := l.kind.parse(s.First)
	if err != nil {
		return nil, err
	}
	last, err := l.kind.parse(s.Last)
	if err != nil {
		return nil, err
	}
	order := strings.Join(l.orderBy(c), ", ")
	conditions = []string{
		fmt.Sprintf("(%s) >= (%s)", order, l.tuple(v.add(l.arguments(first)...))),
		fmt.Sprintf("(%s) <= (%s)", order, l.tuple(v.add(l.arguments(last)...))),
	}
	if l.ordersByTime() {
		at := "t." + quote(l.at)
		n := v.add(timestamp(first.at), timestamp(last.at))
		conditions = append(conditions, fmt.Sprintf("%s >= $%d::%s AND %[1]s <= $%[4]d::%[3]s", at, n, l.atType, n+1))
	}
	return conditions, nil
}

// run runs a statement with parameters of unknown types. Values come as text.
func run(ctx context.Context, tx pgx.Tx, sql string, v values) (*pgconn.Result, error) {
	result := tx.Conn().PgConn().ExecParams(ctx, sql, v, nil, nil, nil).Read()
	return result, result.Err
}

// Ordering names the order in which rows go: see Source.Ordering.
func (p *Pruning) Ordering() string { return p.orders[0].ordering() }

// SameOrder reports whether two positions of one process may be compared: its source had one order and one type of ids.
func SameOrder(a, b cursor.Position) bool {
	one, _, _ := strings.Cut(string(a), ":")
	other, _, _ := strings.Cut(string(b), ":")
	return one == other
}
