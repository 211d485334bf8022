package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/closest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Operator carries out a person's decisions about one process. The caller closes it.
type Operator struct {
	process string
	pool    *pgxpool.Pool
	store   *cursor.Store
	op      *operator.Operator
	config  Config
	source  *table.Source // nil: there is no file that describes it
	written Process       // as the file describes it
}

// NewOperator makes the pool. It does not connect yet. It returns a *UsageError if the configuration has processes
// and this is not one of them. Without processes it accepts every cursor of the schema, but then it cannot do what
// needs the source.
func NewOperator(ctx context.Context, c Config, process string) (*Operator, error) {
	names := c.Names()
	at := slices.Index(names, process)
	if len(names) > 0 && at < 0 {
		return nil, unknownProcess(process, names)
	}
	pool, store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	o := &Operator{process: process, pool: pool, store: store, op: operator.New(store), config: c}
	if at < 0 {
		return o, nil
	}
	o.written = c.Processes[at]
	if o.source, err = c.keys(c.Processes[at], pool); err != nil {
		pool.Close()
		return nil, &UsageError{err}
	}
	return o, nil
}

// Close closes the connections.
func (o *Operator) Close() { o.pool.Close() }

// Outcome is the result of a decision.
type Outcome struct {
	operator.Change
	// Text describes the result for people.
	Text string
	// Records are the records that are sent again or passed over, the first ListRecords of them; nil if there are
	// none, or if they are not known.
	Records *table.Span
	// Problem is why they are not known; "" if they are.
	Problem string
}

// Expected describes the record or place to which o.Expect belongs.
func (o Outcome) Expected() string {
	if f := o.Before.Failure; f != nil && o.Expect == f.Position && f.RecordID != "" {
		return "record " + visible.Short(f.RecordID) + " still fails"
	}
	return "the cursor has not moved"
}

// ListRecords is how many records an outcome lists.
const ListRecords = 20

// Pause calls operator.Operator.Pause. For a process that has never run, it makes the cursor, paused.
func (o *Operator) Pause(ctx context.Context, d cursor.Decision) (Outcome, error) {
	change, err := o.op.Pause(ctx, o.process, d)
	if o.beforeFirstRun(err) {
		var outcome Outcome
		outcome, err = o.pauseNew(ctx, d)
		if !errors.Is(err, cursor.ErrExists) {
			return outcome, err
		}
		change, err = o.op.Pause(ctx, o.process, d) // its first worker has made the cursor meanwhile
	}
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf(said(d, "%s is paused at %s: nothing is delivered until", "%s would be paused at %s: nothing would be delivered until")+
		" `ordered-dispatcher resume %s`", o.process, place(change.After.Position), visible.Shell(o.process))
	if !change.Changed {
		text = o.process + " is paused already"
	}
	return Outcome{Change: change, Text: text}, nil
}

// Resume calls operator.Operator.Resume.
func (o *Operator) Resume(ctx context.Context, d cursor.Decision) (Outcome, error) {
	change, err := o.op.Resume(ctx, o.process, d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf("%s %s from %s", o.process, said(d, "runs on", "would run on"), place(change.After.Position))
	if change.After.Position == cursor.Unplaced {
		text = fmt.Sprintf("%s %s: its first worker starts at the `start` of the file, and refuses if the file has none", o.process, said(d, "runs", "would run"))
	}
	if !change.Changed {
		text = o.process + " is running already"
	}
	if f := change.After.Failure; f != nil && f.Wait > 0 {
		text += fmt.Sprintf("; the next attempt at its failing record %s comes in %s: `ordered-dispatcher retry %s` makes it at once",
			visible.Short(f.RecordID), round(f.Wait), visible.Shell(o.process))
	}
	return Outcome{Change: change, Text: text}, nil
}

// Retry calls operator.Operator.Retry.
func (o *Operator) Retry(ctx context.Context, d cursor.Decision) (Outcome, error) {
	change, err := o.op.Retry(ctx, o.process, d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	f := change.Before.Failure
	if f == nil || f.RecordID == "" {
		text := fmt.Sprintf("%s %s from %s%s", o.process, said(d, "goes on", "would go on"), place(change.After.Position), o.afterwards(d, change))
		return Outcome{Change: change, Text: text}, nil
	}
	text := fmt.Sprintf("record %s of %s %s again at once, with its attempts counted anew%s",
		visible.Short(f.RecordID), o.process, said(d, "is tried", "would be tried"), o.afterwards(d, change))
	return o.outcome(ctx, change, text, change.Before.Position, f.Position), nil
}

// Skip calls operator.Operator.Skip. Without an expectation it expects the record that fails now, so that a command that
// is given twice passes over one record. If the source is known, it refuses to pass over more than one.
func (o *Operator) Skip(ctx context.Context, d cursor.Decision) (Outcome, error) {
	row, err := o.store.Look(ctx, o.process)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	if row.Failure != nil && !row.Failure.OfServer() {
		if d.Expect == nil {
			d.Expect = &row.Failure.Position
		}
		if err := o.alone(ctx, row); err != nil {
			return Outcome{}, err
		}
	}
	change, err := o.op.Skip(ctx, o.process, d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf("record %s of %s, at %s, %s%s", visible.Cut(change.Before.Failure.RecordID), o.process, place(change.After.Position),
		said(d, "is passed over: it is not sent again", "would be passed over: it would not be sent again"), o.afterwards(d, change))
	return o.outcome(ctx, change, text, change.Before.Position, change.After.Position), nil
}

// alone returns an error if the failing record is no longer the next one, for example because a changed source.where
// lets more records through.
func (o *Operator) alone(ctx context.Context, row cursor.Row) error {
	if o.source == nil {
		return nil
	}
	span, err := o.source.Between(ctx, row.Position, row.Failure.Position, 1)
	if err != nil {
		return Reachable(err)
	}
	if span.Total > 1 {
		return fmt.Errorf("%d records lie between the cursor and the failing record %s, the first of them %s: was the source of %q changed? "+
			"Nothing was changed: `ordered-dispatcher retry %s` delivers them, `ordered-dispatcher seek` passes over them",
			span.Total, visible.Short(row.Failure.RecordID), visible.Short(span.Records[0].ID), o.process, visible.Shell(o.process))
	}
	return nil
}

// Seek finds the position of the target in the source, and calls operator.Operator.Seek, or SeekAnew if dedup keys may
// repeat. A process that has never run starts there. Without a source it returns a *UsageError.
func (o *Operator) Seek(ctx context.Context, target Target, d cursor.Decision) (Outcome, error) {
	if o.source == nil {
		return Outcome{}, usage("only the source of a process can make a position: name the configuration with -c")
	}
	to, err := o.find(ctx, target)
	if err != nil {
		return Outcome{}, err
	}
	if err := o.requireOrder(ctx, to); err != nil {
		return Outcome{}, err
	}
	read, err := reading(ctx, o.source)
	if err != nil {
		return Outcome{}, Reachable(err)
	}
	d.Table, d.Order, d.Whole = read.Table, read.Order, read.Whole
	change, keys, err := o.move(ctx, to, d)
	if o.beforeFirstRun(err) {
		return o.seekNew(ctx, to, d)
	}
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	from := change.Before.Position
	switch {
	case from == cursor.Unplaced:
		outcome := o.leftOut(ctx, d, change)
		outcome.Text = fmt.Sprintf("%s %s at %s%s%s", o.process, said(d, "starts", "would start"), place(to), outcome.Text, o.afterwards(d, change))
		return outcome, nil
	case to < from:
		outcome := o.outcome(ctx, change, "", to, from)
		again := "sent"
		if isShadow(o.process) {
			again = "recorded"
		}
		outcome.Text = fmt.Sprintf("%s %s from %s to %s: %s %s again%s%s", o.process, said(d, "goes back", "would go back"), place(from), place(to),
			outcome.counted(d), again, keys, o.afterwards(d, change))
		return outcome, nil
	case to > from:
		outcome := o.outcome(ctx, change, "", from, to)
		outcome.Text = fmt.Sprintf("%s %s from %s to %s: %s passed over for good%s%s", o.process, said(d, "goes on", "would go on"), place(from), place(to),
			outcome.counted(d), keys, o.afterwards(d, change))
		return outcome, nil
	}
	return Outcome{Change: change, Text: fmt.Sprintf("%s %s at %s%s%s", o.process, said(d, "stays", "would stay"), place(to), keys, o.afterwards(d, change))}, nil
}

// requireOrder returns a *UsageError if a worker of the process may read by other columns than the file has. The place
// would look like one of its own, and be another one. A worker refuses a place that does not look like one.
func (o *Operator) requireOrder(ctx context.Context, to cursor.Position) error {
	row, err := o.store.Look(ctx, o.process)
	if errors.Is(err, cursor.ErrUnknown) || err == nil && !table.SameOrder(row.Position, to) {
		return nil
	}
	var all []earlier
	if err == nil {
		all, err = o.config.configurations(ctx, o.pool, o.process)
	}
	if err != nil {
		return Reachable(err)
	}
	for _, e := range mayRun(all, row.Holder) {
		e.settings = e.settings.order()
		if difference := e.difference(o.written.settings("").order()); difference != "" {
			return usage("worker %s ran %s from %s on in another order, in which %s is another place: %s. Nothing was changed. "+
				"Give this file the source of the worker's file; or, if this one is right, start all workers of the process with it",
				e.worker, visible.Line(o.process), e.at.UTC().Format(time.RFC3339), place(to), difference)
		}
	}
	return nil
}

// The words for a seek after ids have started again, and for a seek after a halt over the database.
const (
	otherKeys    = "; the ids may have started again, so records that are delivered from now on have other dedup keys"
	otherHistory = "; without a created_at, records that are delivered from there on have other dedup keys"
)

// move carries out a seek, and describes what happens to dedup keys; "" if they stay.
func (o *Operator) move(ctx context.Context, to cursor.Position, d cursor.Decision) (change operator.Change, keys string, err error) {
	repeat, err := o.keysMayRepeat(ctx)
	if err != nil {
		return operator.Change{}, "", err
	}
	if !repeat {
		change, err = o.op.Seek(ctx, o.process, to, d)
		if err == nil && change.After.Histories != change.Before.Histories {
			keys = otherHistory
		}
		return change, keys, err
	}
	change, err = o.op.SeekAnew(ctx, o.process, to, d)
	return change, otherKeys, err
}

// keysMayRepeat reports whether ids may have started again since the cursor was last moved. If the cursor has no
// place yet, it asks about the cursor before it.
func (o *Operator) keysMayRepeat(ctx context.Context) (bool, error) {
	row, err := o.store.Look(ctx, o.process)
	if err != nil {
		return false, err
	}
	if row.Position == cursor.Unplaced {
		return processor.KeysMayRepeat(ctx, o.store, o.source, o.process)
	}
	horizon, err := o.op.Horizon(ctx, o.process)
	if err != nil {
		return false, err
	}
	return o.source.KeysMayRepeat(ctx, row.Position, horizon)
}

// reading returns what a source reads: its table, the order, and whether it takes every row.
func reading(ctx context.Context, source *table.Source) (d cursor.Decision, err error) {
	d.Whole = source.Whole()
	if d.Table, err = source.Name(ctx); err == nil {
		d.Order, err = source.Ordering(ctx)
	}
	return d, err
}

// withRemoved adds to the error of a record that is not there how far retention has removed records, if that is known.
func (o *Operator) withRemoved(ctx context.Context, missing error) error {
	read, err := reading(ctx, o.source)
	if err != nil {
		return missing
	}
	all, err := o.op.PrunedAround(ctx, read)
	if err != nil || len(all) == 0 {
		return missing
	}
	return fmt.Errorf("%w; perhaps it was removed: %s", missing, all[0])
}

// find asks the source for the position of a target, and whether the source can go on from there.
func (o *Operator) find(ctx context.Context, target Target) (cursor.Position, error) {
	to, err := target(ctx, o.source)
	if errors.Is(err, table.ErrNoRecord) {
		err = o.withRemoved(ctx, err)
	}
	if errors.Is(err, table.ErrNoRecord) || errors.Is(err, table.ErrAmbiguous) || errors.Is(err, table.ErrNoTime) {
		return "", &UsageError{err}
	}
	if err != nil || to == "" {
		return "", Reachable(err)
	}
	if _, err = o.source.Read(ctx, to, 0); err == nil {
		return to, nil
	}
	err = Reachable(fmt.Errorf("the source cannot be read after %s, so nothing was changed: %w", to, err))
	if processor.IsPermanent(err) {
		return "", &UsageError{err}
	}
	return "", err
}

// outcome lists the records after one position and up to another. If it cannot find them, that is not a failure: the
// change is made.
func (o *Operator) outcome(ctx context.Context, change operator.Change, text string, after, upTo cursor.Position) Outcome {
	outcome := Outcome{Change: change, Text: text}
	if o.source == nil { // then only the failing record is known, by the row
		f := change.Before.Failure
		outcome.Records = &table.Span{Records: []processor.Record{{ID: f.RecordID, Position: f.Position}}, Total: 1}
		return outcome
	}
	span, err := o.source.Between(ctx, after, upTo, ListRecords)
	if err != nil {
		outcome.Problem = fmt.Sprintf("it is not known which records these are: %v", err)
		return outcome
	}
	outcome.Records = &span
	return outcome
}

// counted begins the sentence about what becomes of the records of an outcome.
func (o Outcome) counted(d cursor.Decision) string {
	switch {
	case o.Records == nil:
		return "every record between them " + said(d, "is", "would be")
	case o.Records.Total == 1:
		return "1 record " + said(d, "is", "would be")
	default:
		return o.Total() + " records " + said(d, "are", "would be")
	}
}

// Total describes how many records there are, as far as they are counted.
func (o Outcome) Total() string {
	if o.Records.Total >= table.MaxLagRecords {
		return fmt.Sprintf("%d or more", o.Records.Total)
	}
	return fmt.Sprint(o.Records.Total)
}

// said returns the words for a decision that is carried out, or those for a dry run of it: nothing has happened then.
func said(d cursor.Decision, done, would string) string {
	if d.DryRun {
		return would
	}
	return done
}

// afterwards describes the state in which a process is left, or would be.
func (o *Operator) afterwards(d cursor.Decision, c operator.Change) string {
	look := ""
	if c.Looks {
		look = said(d, "; its worker looks first for rows that were stamped before that position, and halts again if there are any",
			"; its worker would look first for rows that were stamped before that position, and halt again if there are any")
	}
	switch {
	case c.After.State == cursor.Paused:
		return fmt.Sprintf("%s; the process %s paused until `ordered-dispatcher resume %s`", look, said(d, "stays", "would stay"), visible.Shell(o.process))
	case c.Before.State == cursor.Running:
		return look + "; the process is running"
	default:
		return look + "; the process " + said(d, "is running", "would run again")
	}
}

// History returns the last events of the process, the newest first. It returns a *UsageError for a process that never
// existed.
func (o *Operator) History(ctx context.Context, limit int) ([]operator.Event, error) {
	events, err := o.op.History(ctx, o.process, limit)
	if err != nil {
		return nil, Reachable(err)
	}
	if len(events) == 0 {
		_, err := o.store.Look(ctx, o.process)
		return nil, o.explain(ctx, err)
	}
	return events, nil
}

// explain adds the next step to a refusal.
func (o *Operator) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cursor.ErrUnknown):
		return o.unknown(ctx, err)
	case errors.Is(err, cursor.ErrExists):
		return fmt.Errorf("%w: it was made a moment ago; nothing was changed: look at `ordered-dispatcher status %s` and decide again", err, visible.Shell(o.process))
	case errors.Is(err, cursor.ErrHalted), errors.Is(err, operator.ErrNotFailing), errors.Is(err, operator.ErrOldPrimary):
		return o.standing(ctx, err)
	case errors.Is(err, cursor.ErrMoved):
		return fmt.Errorf("%w; nothing was changed: look at `ordered-dispatcher status %s` and decide again", err, visible.Shell(o.process))
	case errors.Is(err, cursor.ErrUncertain):
		return uncertain(o.process, err)
	default:
		return Reachable(err)
	}
}

// uncertain adds to cursor.ErrUncertain where to look.
func uncertain(process string, err error) error {
	return fmt.Errorf("%w; before you do it again, check whether it was done: `ordered-dispatcher history %s`", err, visible.Shell(process))
}

// unknown adds the names of the processes that exist.
func (o *Operator) unknown(ctx context.Context, err error) error {
	rows, listErr := o.store.List(ctx)
	if listErr != nil {
		return err
	}
	switch past := o.store.Past(ctx, o.process); {
	case errors.Is(past, cursor.ErrRenamed):
		return usage("%w", past)
	case errors.Is(past, cursor.ErrExists):
		return o.explain(ctx, past)
	}
	if o.source != nil {
		return fmt.Errorf("%s has not run yet, so no record of it fails or is held back; nothing was changed. `pause` and `seek` work before the first run", o.process)
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.Process)
	}
	if len(names) == 0 {
		return usage("process %q has no cursor, and no other process has one: `ordered-dispatcher run` makes it, and so do `pause` and `seek` with -c FILE", o.process)
	}
	if meant := closest.Name(o.process, names); meant != "" {
		return usage("process %q has no cursor: did you mean %s? These processes have one: %s", o.process, meant, oneOf(names))
	}
	return usage("process %q has no cursor; these processes have one: %s. `pause` and `seek` with -c FILE make it before its first run", o.process, oneOf(names))
}

// oneOf lists names.
func oneOf(names []string) string { return strings.Join(names, ", ") }

// place writes a position for people.
func place(p cursor.Position) string {
	switch p {
	case "":
		return "the beginning"
	case cursor.Unplaced:
		return "a place that is not known yet"
	default:
		return visible.Cut(string(p))
	}
}

// Actor returns the account that runs this program: user@host.
func Actor() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
