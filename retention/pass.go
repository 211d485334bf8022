package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Errors of Pass.
var (
	// ErrBusy reports that another session removes rows of the table, or a seek of any process is under way.
	ErrBusy = operator.ErrBusy
	// ErrUnknown reports a cursor of which it is not known whether it needs rows of the table.
	ErrUnknown = errors.New("nothing was removed, because it is not known what a cursor needs")
)

// Config describes a pass. All fields except Shelf, Others and EraseCalls are required.
type Config struct {
	Rule Rule
	// Shelf is where ModeFiles writes. Default: the directory Rule.Directory. A URL there has no default.
	Shelf Shelf
	// Operator has the cursors of all processes that read the table.
	Operator *operator.Operator
	// Source is the table, read in the order in which rows go.
	Source *table.Source
	// Readers are all processes that read the table, a part of it or a table above it.
	Readers []Reader
	// Since is Operator.LastEvent of before it was asked what processes read. Workers that are started with another
	// configuration later end the pass.
	Since int64
	// Others are cursors that read other tables.
	Others []string
	// EraseCalls deletes what the shadows among Readers have recorded of records, for Erase. nil: there are none.
	EraseCalls func(context.Context, pgx.Tx, []table.Keyed) (int64, error)
}

// Reader is a process that reads the table.
type Reader struct {
	Process string
	Source  *table.Source
	// Start is where it begins while its cursor has no place: processor.Beginning, processor.End, or a position.
	Start cursor.Position
	// Listed: the file of this program has the process.
	Listed bool
	// Absent: it is known that no worker runs it.
	Absent bool
	// Unseen: it is not known whether a worker runs it. Then Absent is false.
	Unseen bool
	// Problem is why its position does not show what it has delivered; "" if it does.
	Problem string
}

// Report is the result of a pass.
type Report struct {
	Table string
	Mode  Mode
	// Rows were removed, in Batches transactions.
	Rows    int64
	Batches int
	// Partitions were dropped. Their rows are not counted in Rows.
	Partitions []string
	// Waiting are partitions that cannot go yet although no process needs them, and why. In the other modes it is the row
	// that ended the pass, if its created_at is none that becomes old, or is in the future.
	Waiting []string
	// Through is the position of the last row that was removed; "" if none was.
	Through cursor.Position
	// Holds are the processes that need the first row that is old enough and stays.
	Holds []Hold
}

// Hold is a process that keeps a row from being removed.
type Hold struct {
	Process string
	// State of its cursor; "" if it has none.
	State cursor.State
	// Absent: it is known that no worker runs it.
	Absent bool
	// Record is the row, without its content.
	Record processor.Record
	// fix is what makes the row free.
	fix string
}

// String names the process and the row, and what makes the row free.
func (h Hold) String() string {
	state := string(h.State)
	switch {
	case h.State == "":
		state = "not run yet"
	case h.State == cursor.Running && h.Absent:
		state = "no worker"
	}
	at := ""
	if !h.Record.CreatedAt.IsZero() {
		at = " of " + h.Record.CreatedAt.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s (%s) has not passed row %s%s: %s", visible.Line(h.Process), state, visible.Short(h.Record.ID), at, h.fix)
}

// maxFileBytes bounds the rows of one file, as the table stores them.
const maxFileBytes = 8 << 20

// Pass removes all rows that no reader needs and that are older than Keep, in small transactions. After each it rests
// as long as that took. The report is valid also with an error: it has what was removed before. An error removes
// nothing by itself, and a later pass goes on where this one ended.
func Pass(ctx context.Context, c Config) (Report, error) {
	p, err := newPass(ctx, c)
	if err != nil {
		return p.report, err
	}
	if p.Rule.Mode == ModeDrop {
		err = p.drop(ctx)
	} else {
		err = p.run(ctx)
	}
	if err == nil && p.Rule.Mode != ModeMark && (p.report.Rows > 0 || len(p.report.Partitions) > 0) {
		err = p.forgetAmended(ctx)
	}
	return p.report, err
}

// known returns why it is not known what a reader needs.
func (c Config) known() error {
	var all []error
	for _, r := range c.Readers {
		if r.Problem != "" {
			all = append(all, fmt.Errorf("%w: process %s: %s", ErrUnknown, visible.Line(r.Process), r.Problem))
		}
	}
	return errors.Join(all...)
}

// pass is a Pass under way.
type pass struct {
	Config
	pruning *table.Pruning
	shelf   Shelf // of ModeFiles
	states  map[string]cursor.State
	report  Report
}

func newPass(ctx context.Context, c Config) (p pass, err error) {
	c.Rule = c.Rule.Filled()
	p.Config = c
	if err := errors.Join(c.Rule.Check(), c.known()); err != nil {
		return p, err
	}
	if p.shelf, err = c.shelf(); err != nil {
		return p, err
	}
	if p.pruning, err = c.Source.Pruning(ctx, c.Rule.Keep, p.needs()); err == nil {
		p.report = Report{Table: p.pruning.Table(), Mode: c.Rule.Mode}
	}
	return p, err
}

func (p *pass) needs() (all []table.Need) {
	for _, r := range p.Readers {
		all = append(all, table.Need{Process: r.Process, Source: r.Source})
	}
	return all
}

// run works in batches until a row must stay.
func (p *pass) run(ctx context.Context) error {
	after, err := p.begin(ctx)
	for err == nil {
		began := time.Now()
		var s table.Stretch
		if s, err = p.batch(ctx, after); err != nil || !s.Full {
			break
		}
		after = s.Last
		rest(ctx, time.Since(began))
		err = ctx.Err()
	}
	return err
}

// begin returns the position after which the pass begins. Rows that are marked stay in the table, so the pass begins
// after the last of them. How far rows are marked is noted, and says only where to look: after TRUNCATE … RESTART
// IDENTITY, other rows are there. TestPrune_MarksRowsAfterATruncateThatBeginsAgain
func (p *pass) begin(ctx context.Context) (after cursor.Position, err error) {
	if p.Rule.Mode != ModeMark {
		return "", nil
	}
	through, err := p.Operator.Pruned(ctx, p.pruning.Table(), p.pruning.Ordering())
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(through, func(pruned operator.Pruned) bool { return pruned.Marks() })
	if i < 0 {
		return "", nil
	}
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		after, err = p.pruning.Marked(ctx, tx, p.Rule.Column, through[i].Through)
		return none, err
	})
	return after, err
}

// rest gives the deliveries that waited for a transaction as much time as it took.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// batch removes the rows after a position that may go, at most Rule.Batch.
func (p *pass) batch(ctx context.Context, after cursor.Position) (s table.Stretch, err error) {
	var removed table.Removed
	err = p.Operator.Prune(ctx, p.pruning.Table(), p.Since, func(ctx context.Context, tx pgx.Tx, standing []operator.Standing) (operator.Removal, error) {
		if err := p.settle(standing); err != nil {
			return operator.Removal{}, err
		}
		if err := p.Rule.Fits(ctx, tx, p.pruning); err != nil {
			return operator.Removal{}, err
		}
		if s, err = p.pruning.Look(ctx, tx, after, p.Rule.Batch, p.maxBytes()); err != nil || s.Rows == 0 {
			return operator.Removal{}, err
		}
		if removed, err = p.remove(ctx, tx, s); err != nil {
			return operator.Removal{}, err
		}
		return p.noted(removed), nil
	})
	if err != nil {
		return s, err
	}
	p.report.Rows += removed.Rows
	if removed.Rows > 0 {
		p.report.Batches++
		p.report.Through = removed.Through[p.pruning.Ordering()]
	}
	p.ends(s.Stop)
	return s, nil
}

// ends reports what holds back the row that ended the pass, unless it is merely young.
func (p *pass) ends(stop *table.Stop) {
	p.report.Holds = p.holds(stop)
	if stop != nil && stop.Stamp != "" {
		p.report.Waiting = []string{fmt.Sprintf("row %s has the created_at %s, so it is not old enough, and no row after it goes: correct that time, or delete the row",
			visible.Short(stop.Record.ID), stop.Stamp)}
	}
}

// noted is what the transaction notes of rows that it removed.
func (p *pass) noted(r table.Removed) operator.Removal {
	return operator.Removal{Through: r.Through, Rows: r.Rows, Tables: r.Tables, Mode: string(p.Rule.Mode), Place: p.Rule.place()}
}

// maxBytes bounds a batch whose rows come here; 0: no bound.
func (p *pass) maxBytes() int {
	if p.Rule.Mode == ModeFiles {
		return maxFileBytes
	}
	return 0
}

// remove removes a stretch in the way of the rule.
func (p *pass) remove(ctx context.Context, tx pgx.Tx, s table.Stretch) (table.Removed, error) {
	switch p.Rule.Mode {
	case ModeMark:
		return p.pruning.Mark(ctx, tx, s, p.Rule.Column)
	case ModeArchive:
		return p.pruning.Archive(ctx, tx, s, p.Rule.Archive)
	case ModeFiles:
		return p.file(ctx, tx, s)
	case ModeDelete:
		return p.pruning.Delete(ctx, tx, s)
	default:
		return table.Removed{}, fmt.Errorf("mode %s removes no rows", p.Rule.Mode)
	}
}

// settle takes over the positions of all cursors as the transaction sees them. A cursor that is neither a reader nor
// reads another table has appeared since, and may need every row.
func (p *pass) settle(standing []operator.Standing) error {
	p.states = map[string]cursor.State{}
	at := map[string]cursor.Position{}
	for _, s := range standing {
		reads := slices.ContainsFunc(p.Readers, func(r Reader) bool { return r.Process == s.Process })
		switch failure := (cursor.Failure{Class: s.Class}); {
		case !reads && !slices.Contains(p.Others, s.Process):
			return fmt.Errorf("%w: %s has appeared", ErrUnknown, visible.Line(s.Process))
		case reads && failure.OfServer():
			return fmt.Errorf("%w: process %s is halted over its database (%s), so rows before its cursor may be undelivered: decide on that halt first",
				ErrUnknown, visible.Line(s.Process), s.Class)
		case reads && s.Elsewhere:
			return fmt.Errorf("%w: the database is not the one the cursor of process %s belongs to, so rows before it may be undelivered: it was restored or copied. "+
				"Once you have compared receivers with the table: ordered-dispatcher restored --all --reason …", ErrUnknown, visible.Line(s.Process))
		case reads && s.Late:
			return fmt.Errorf("%w: the database was restored or a standby promoted, and rows before the cursor of process %s may be undelivered: its worker looks for them %s",
				ErrUnknown, visible.Line(s.Process), p.whenLooked(s))
		}
		p.states[s.Process], at[s.Process] = s.State, s.Position
	}
	p.pruning.Settle(func(n *table.Need) {
		place, placed := at[n.Process]
		if !placed || place == cursor.Unplaced {
			i := slices.IndexFunc(p.Readers, func(r Reader) bool { return r.Process == n.Process })
			place = p.Readers[i].Start
		}
		n.None = place == processor.End
		n.After = place
		if place == processor.Beginning || n.None {
			n.After = ""
		}
	})
	return nil
}

// whenLooked is when a worker looks for late rows of a process: it must run.
func (p *pass) whenLooked(s operator.Standing) string {
	if s.State == cursor.Running {
		return "at its next round"
	}
	i := slices.IndexFunc(p.Readers, func(r Reader) bool { return r.Process == s.Process })
	return fmt.Sprintf("once it runs, and it is %s: %s", s.State, p.Readers[i].fix(s.State))
}

// holds describes who needs a row that is old enough.
func (p *pass) holds(stop *table.Stop) (all []Hold) {
	if stop == nil || stop.Young {
		return nil
	}
	for _, process := range stop.By {
		i := slices.IndexFunc(p.Readers, func(r Reader) bool { return r.Process == process })
		state := p.states[process]
		all = append(all, Hold{Process: process, State: state, Absent: p.Readers[i].Absent, Record: stop.Record, fix: p.Readers[i].fix(state)})
	}
	return all
}

// fix is what makes the rows free that a reader needs.
func (r Reader) fix(state cursor.State) string {
	name := visible.Shell(r.Process)
	forget := fmt.Sprintf("; if nobody runs it any more: ordered-dispatcher process forget %s --reason …", name)
	if !r.Listed {
		return "it is not in this file" + forget
	}
	forget += ", and remove it from the file"
	switch {
	case r.Unseen:
		forget = "; it is not known whether a worker runs it, as through a connection pooler" + forget
	case !r.Absent: // a worker runs it
		forget = ""
	}
	switch {
	case state == cursor.Paused:
		return fmt.Sprintf("ordered-dispatcher resume %s%s", name, forget)
	case state == cursor.Halted:
		return fmt.Sprintf("ordered-dispatcher status %s shows why it halted%s", name, forget)
	case state == "":
		return "run it, or remove it from the file"
	case r.Absent:
		return "start `ordered-dispatcher run`" + forget
	case r.Unseen:
		return "it has yet to come so far" + forget
	default:
		return "it delivers in order, and has yet to come so far"
	}
}

// names lists processes.
func names(holds []Hold) string {
	var all []string
	for _, h := range holds {
		all = append(all, visible.Line(h.Process))
	}
	return strings.Join(all, ", ")
}

// PassesCursor reports that rows are older than Keep and a cursor has not passed them, so the rule was not carried
// out to its end.
type PassesCursor struct {
	Table string
	Keep  time.Duration
	Holds []Hold
}

func (e *PassesCursor) Error() string {
	var all []string
	for _, h := range e.Holds {
		all = append(all, h.String())
	}
	return fmt.Sprintf("retention of %s with keep %v would pass the cursor of %s, so it stopped there: %s",
		visible.Line(e.Table), e.Keep, names(e.Holds), strings.Join(all, "; "))
}

// Refused returns a *PassesCursor if the rule would pass a cursor; nil if it was carried out to its end.
func (r Report) Refused(keep time.Duration) error {
	if len(r.Holds) == 0 {
		return nil
	}
	return &PassesCursor{Table: r.Table, Keep: keep, Holds: r.Holds}
}

// Removed reports whether the pass removed rows or partitions.
func (r Report) Removed() bool { return r.Rows > 0 || len(r.Partitions) > 0 }

// MaxPreview bounds the rows that Preview counts.
const MaxPreview = 10_000

// Preview is Pass that removes nothing: the report has the first rows or partitions that a pass would remove, at most
// MaxPreview rows.
func Preview(ctx context.Context, c Config) (Report, error) {
	p, err := newPass(ctx, c)
	if err != nil {
		return p.report, err
	}
	after, err := p.begin(ctx)
	if err != nil {
		return p.report, err
	}
	err = p.Operator.Prune(ctx, p.pruning.Table(), p.Since, func(ctx context.Context, tx pgx.Tx, standing []operator.Standing) (operator.Removal, error) {
		if err := p.settle(standing); err != nil {
			return operator.Removal{}, err
		}
		if p.Rule.Mode == ModeDrop {
			return operator.Removal{}, p.previewDrop(ctx, tx)
		}
		if err := p.Rule.Fits(ctx, tx, p.pruning); err != nil {
			return operator.Removal{}, err
		}
		s, err := p.pruning.Look(ctx, tx, after, MaxPreview, 0)
		if err != nil {
			return operator.Removal{}, err
		}
		p.report.Rows, p.report.Through = int64(s.Rows), s.Last
		p.ends(s.Stop)
		p.report.Batches = (s.Rows + p.Rule.Batch - 1) / p.Rule.Batch
		return operator.Removal{}, nil
	})
	return p.report, err
}
