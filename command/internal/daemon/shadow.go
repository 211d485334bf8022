package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Shadow makes a process record the calls of its sink instead of making them.
type Shadow struct {
	// Table is the table of the calls.
	//
	// In the file: the table of the calls, with its schema. `ordered-dispatcher migrate shadow` makes it.
	Table string `knob:"table" need:"table: public.shadow_calls"`
	// Of is the process whose calls are compared; "" for none.
	//
	// In the file: the process to compare with: a live one of this file, with the same source. Default: none.
	Of string `knob:"of" like:"of: sms"`
}

// shadowSuffix ends the name of each process that records, and of no other one. So nothing but a rename makes a cursor
// that has recorded one that sends: see docs/decisions/0068-shadow.md.
const shadowSuffix = "@shadow"

func isShadow(name string) bool { return strings.HasSuffix(name, shadowSuffix) }

// parseShadows makes the processes that record do so.
func parseShadows(processes []Process, node func(name string) yamlfile.Node) {
	for i := range processes {
		p := &processes[i]
		n := node(p.Name)
		switch {
		case p.Shadow == nil && isShadow(p.Name):
			n.Fault("a name that ends with %s belongs to a process that records calls and sends none: add `shadow: {table: …}`. "+
				"To let its cursor send from now on, give the process another name here, and then `ordered-dispatcher process rename %s NEW --reason …`", shadowSuffix, visible.Shell(p.Name))
		case p.Shadow != nil && !isShadow(p.Name):
			n.Fault("a process with `shadow` sends nothing, and its name has to show that, so that its cursor is not taken for one that has sent: call it %q",
				p.Name+shadowSuffix)
		case p.Shadow != nil && n.Sound():
			config, err := newRecorder(*p, processes)
			if err != nil {
				at, _ := n.AnyMapping().Get("shadow")
				at.Fault("%v", err)
				continue
			}
			p.Sink.Config = config
			if _, err := config.Open(sinks.Environment{}); err != nil {
				n.Refuse(err)
			}
		}
	}
}

// recorder is the sink of a process that records. It has none of the abilities of the sink that it takes the place of,
// since it has no receiver.
type recorder struct {
	process Process // with the sink that would send
	table   pgx.Identifier
	other   *Process // nil: compare with none
}

func newRecorder(p Process, processes []Process) (recorder, error) {
	r := recorder{process: p}
	name, err := pgname.Parse(p.Shadow.Table)
	if err == nil && len(name) != 2 {
		err = errors.New("it needs a schema and a name, such as public.shadow_calls")
	}
	if err != nil {
		return r, fmt.Errorf("table: %w", err)
	}
	r.table = name
	if p.Shadow.Of == "" {
		return r, nil
	}
	at := slices.IndexFunc(processes, func(other Process) bool { return other.Name == p.Shadow.Of })
	switch {
	case p.Shadow.Of == p.Name:
		return r, errors.New("of: it is this process itself: name the process that is live")
	case at < 0:
		return r, fmt.Errorf("of: there is no process %q in this file", p.Shadow.Of)
	case processes[at].Shadow != nil || isShadow(processes[at].Name):
		return r, fmt.Errorf("of: %q sends nothing, either: name the process that is live", p.Shadow.Of)
	case processes[at].Sink.Config == nil:
		return r, fmt.Errorf("of: the sink of %q has a fault", p.Shadow.Of)
	}
	r.other = &processes[at]
	if differs := differentSource(p, *r.other); differs != "" {
		return r, fmt.Errorf("of: source.%s is not that of %q. Only calls for the same records can be compared", differs, p.Shadow.Of)
	}
	return r, nil
}

// differentSource returns the first setting that lets two processes read different records; "" if there is none.
func differentSource(a, b Process) string {
	left, right := a.filled().Source.Named(), b.filled().Source.Named()
	switch {
	case left.Table != right.Table:
		return "table"
	case left.Order != right.Order:
		return "order"
	case left.Where != right.Where:
		return "where"
	case left.Columns != right.Columns:
		return "columns"
	default:
		return ""
	}
}

// Validate is part of sinks.Config. The sink itself was validated when it was read.
func (r recorder) Validate() error { return nil }

// Settings are those of the sink that would send.
func (r recorder) Settings() map[string]string { return r.process.Sink.Config.Settings() }

// Confidential is as Settings.
func (r recorder) Confidential() map[string]string {
	if sink, ok := r.process.Sink.Config.(sinks.Confidential); ok {
		return sink.Confidential()
	}
	return nil
}

// Open makes both sinks, and connects to nothing. Neither of them gets the standard output.
func (r recorder) Open(env sinks.Environment) (sinks.Opened, error) {
	env.Stdout = io.Discard
	recording := &recording{}
	renderer, err := recording.open(r.process, env)
	if err != nil {
		return sinks.Opened{}, err
	}
	config := shadow.Config{Table: r.table, Sink: renderer, As: strings.TrimSuffix(r.process.Name, shadowSuffix)}
	if r.other != nil {
		config.As = r.other.Name
		other := shadow.Version{Process: r.other.Name}
		if other.Sink, err = recording.open(*r.other, env); err != nil {
			return sinks.Opened{}, err
		}
		if other.Prepare, err = r.other.prepare(); err != nil {
			return sinks.Opened{}, err
		}
		config.Other = &other
	}
	recording.Sink, err = shadow.New(config)
	return sinks.Opened{InTx: recording}, err
}

// recording is a shadow.Sink with the sinks that render for it.
type recording struct {
	*shadow.Sink
	rendering closers
}

// open makes a sink that renders.
func (r *recording) open(p Process, env sinks.Environment) (sinks.Renderer, error) {
	env.Checkpoint = p.filled().Checkpoint
	env.Logger = quietly(env.Logger)
	opened, err := p.Sink.Config.Open(env)
	if err != nil {
		return nil, err
	}
	if closer, ok := opened.Sink().(io.Closer); ok {
		r.rendering.add(closer)
	}
	renderer, ok := opened.Sink().(sinks.Renderer)
	if !ok {
		return nil, fmt.Errorf("the sink of process %q is %s, whose calls cannot be recorded: see docs/read-models.md", p.Name, p.Sink.Kind)
	}
	return renderer, nil
}

// Close closes the sinks that render.
func (r *recording) Close() error {
	r.rendering.close()
	return nil
}

// Check looks for the table.
func (r recorder) Check(ctx context.Context, _ string, around sinks.Around) ([]sinks.Finding, error) {
	err := shadow.Inspect(ctx, around.Cursors, r.table)
	switch {
	case errors.Is(err, shadow.ErrNoTable):
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: fmt.Sprintf("ordered-dispatcher migrate shadow --table %s --apply", visible.Shell(r.process.Shadow.Table))}}, nil
	case errors.Is(err, shadow.ErrOtherTable):
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: "name another table in `shadow`"}}, nil
	default:
		return nil, err
	}
}

// Needs are the rights on the table.
func (r recorder) Needs(context.Context, *pgxpool.Pool) (sinks.Needs, error) {
	return sinks.Needs{Privileges: shadow.Needs(r.table)}, nil
}

// shadowed finds the comparison of two processes of the file: ok is false if the new one does not record.
func (v Versions) shadowed(c Config) (r recorder, ok bool) {
	at := slices.Index(c.Names(), v.New)
	if at < 0 {
		return r, false
	}
	r, ok = c.Processes[at].Sink.Config.(recorder)
	return r, ok
}

// OfCalls reports whether one of the versions records calls.
func (v Versions) OfCalls() bool { return isShadow(v.Old) || isShadow(v.New) }

// shownCalls is how many calls CompareCalls names.
const shownCalls = 10

// Calls are a comparison of the calls of two processes.
type Calls struct {
	shadow.Comparison
	// Shadow is the cursor of the process that records, as it was after that.
	Shadow cursor.Row
	// Left is how many records come after it. At most table.MaxLagRecords are counted.
	Left int64
}

// CompareCalls compares the calls that the new version has recorded with those of the old one.
func CompareCalls(ctx context.Context, c Config, v Versions) (calls Calls, err error) {
	if _, err := v.table(c); err != nil {
		return calls, err
	}
	r, ok := v.shadowed(c)
	switch {
	case isShadow(v.Old) && !isShadow(v.New):
		return calls, usage("the shadow comes second: `ordered-dispatcher process compare %s %s -c FILE`", visible.Shell(v.New), visible.Shell(v.Old))
	case !ok || r.other == nil || r.other.Name != v.Old:
		return calls, usage("%q does not record its calls beside those of %q: write `shadow: {of: %s, …}` into the file", v.New, v.Old, v.Old)
	}
	pool, store, err := c.open(ctx)
	if err != nil {
		return calls, err
	}
	defer pool.Close()
	source, err := c.keys(r.process, pool)
	if err != nil {
		return calls, &UsageError{err}
	}
	if calls.Comparison, err = shadow.Compare(ctx, pool, r.table, v.New, v.Old, shownCalls); err != nil {
		return calls, Reachable(err)
	}
	if calls.Shadow, err = store.Look(ctx, v.New); err != nil {
		return calls, v.explain(ctx, store, err)
	}
	lag, err := source.Lag(ctx, calls.Shadow.Position)
	calls.Left = lag.Records
	return calls, Reachable(err)
}

// left describes the records that are not compared.
func (c Calls) left() string {
	switch {
	case c.Left == 1:
		return "1 record is not compared"
	case c.Left >= table.MaxLagRecords:
		return fmt.Sprintf("%d or more records are not compared", c.Left)
	default:
		return fmt.Sprintf("%d records are not compared", c.Left)
	}
}

// standing returns an error if the shadow does not go on by itself.
func (c Calls) standing() error {
	if c.Shadow.State == cursor.Running {
		return nil
	}
	at := ""
	if f := c.Shadow.Failure; f != nil && f.RecordID != "" && c.Shadow.State == cursor.Halted {
		at = " at record " + visible.Short(f.RecordID)
	}
	return fmt.Errorf("%s is %s%s: %s. The next step: `ordered-dispatcher status %s`",
		visible.Short(c.Shadow.Process), c.Shadow.State, at, c.left(), visible.Shell(c.Shadow.Process))
}

// PrintCalls prints a comparison of calls. It returns an error if some differ, or if some were not compared and will not
// be: what comes after a halt is not known to be equal.
func PrintCalls(w io.Writer, v Versions, c Calls) error {
	standing := c.standing()
	if c.Calls == 0 {
		if standing != nil {
			return standing
		}
		return fmt.Errorf("%s has recorded no call beside %s yet: `ordered-dispatcher status` shows how far it is", visible.Short(v.New), visible.Short(v.Old))
	}
	var b strings.Builder
	unstored := false
	for _, d := range c.First {
		unstored = unstored || slices.Contains(d.Differs, shadow.Unstored)
		fmt.Fprintf(&b, "sequence %d, %s: %s\n", d.Sequence, visible.Short(d.DedupKey), visible.Line(strings.Join(d.Differs, ", ")))
	}
	if c.Differing > int64(len(c.First)) {
		fmt.Fprintln(&b, "… and more")
	}
	fmt.Fprintf(&b, "%d of %d calls differ, up to %s", c.Differing, c.Calls, place(c.Last))
	if standing == nil && c.Left > 0 {
		b.WriteString("; " + c.left() + " yet")
	}
	b.WriteByte('\n')
	if unstored {
		fmt.Fprintln(&b, "Not stored are credentials, signatures, headers from the file and the full address")
	}
	if _, err := io.WriteString(w, visible.Text(b.String())); err != nil {
		return err
	}
	if standing == nil && c.Differing > 0 {
		return ErrDiffers
	}
	return standing
}

// noShadows refuses a switch to or from what has built nothing.
func (v Versions) noShadows() error {
	if name := cmp.Or(v.shadowName(v.Old), v.shadowName(v.New)); name != "" {
		return usage("%q records calls, and has built nothing that readers could use. Going live with its sink: see docs/read-models.md", name)
	}
	return nil
}

func (v Versions) shadowName(name string) string {
	if isShadow(name) {
		return name
	}
	return ""
}

// renamedShadow describes what a rename does to a cursor that has recorded calls, or will.
func renamedShadow(from, to string) string {
	switch {
	case isShadow(from) && !isShadow(to):
		return ". Its sink gets the records after that. Those before it were recorded, and never sent"
	case !isShadow(from) && isShadow(to):
		return ". Nothing is sent any more: the records after that are recorded"
	default:
		return ""
	}
}

// live returns settings without those of a shadow.
func (s settings) live() settings {
	all := settings{}
	for name, value := range s {
		if !strings.HasPrefix(name, shadowKey) {
			all[name] = value
		}
	}
	return all
}

// shadowKey begins the keys under which the settings have those of a shadow.
const shadowKey = "shadow."

func (p Process) shadowSettings() settings {
	if p.Shadow == nil {
		return nil
	}
	return settings{shadowKey + "table": p.Shadow.Table, shadowKey + "of": p.Shadow.Of}
}

// recordedError refuses to begin a process at its start while the cursor is there that recorded for it.
func recordedError(p Process, old, from string) error {
	name, old := visible.Shell(p.Name), visible.Shell(old)
	return usage("process %q has no cursor, its table holds records, and the cursor %s, which has recorded calls and sent none, has no process in this file. "+
		"To send only what comes after those: `ordered-dispatcher process rename %[2]s %s -c FILE --reason …`. "+
		"To send from the %s on: `ordered-dispatcher seek %[3]s -c FILE --to-%[4]s --reason …`. "+
		"If it takes the place of a live process, rename the cursor of that process instead", p.Name, old, name, from)
}
