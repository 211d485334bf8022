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

// IsShadow reports whether the new version records calls.
func (v Versions) IsShadow(c Config) bool {
	_, ok := v.shadowed(c)
	return ok
}

// shownCalls is how many calls CompareCalls names.
const shownCalls = 10

// CompareCalls compares the calls that the new version has recorded with those of the old one.
func CompareCalls(ctx context.Context, c Config, v Versions) (shadow.Comparison, error) {
	if _, err := v.table(c); err != nil {
		return shadow.Comparison{}, err
	}
	r, ok := v.shadowed(c)
	if !ok || r.other == nil || r.other.Name != v.Old {
		return shadow.Comparison{}, usage("%q does not record its calls beside those of %q: write `shadow: {of: %s, …}` into the file", v.New, v.Old, v.Old)
	}
	pool, _, err := c.open(ctx)
	if err != nil {
		return shadow.Comparison{}, err
	}
	defer pool.Close()
	compared, err := shadow.Compare(ctx, pool, r.table, v.New, v.Old, shownCalls)
	return compared, Reachable(err)
}

// PrintCalls prints a comparison of calls. It returns ErrFindings if some differ.
func PrintCalls(w io.Writer, v Versions, c shadow.Comparison) error {
	if c.Calls == 0 {
		return fmt.Errorf("%s has recorded no call beside %s yet: `ordered-dispatcher status` shows how far it is", visible.Short(v.New), visible.Short(v.Old))
	}
	var b strings.Builder
	for _, d := range c.First {
		fmt.Fprintf(&b, "sequence %d, %s: %s\n", d.Sequence, visible.Short(d.DedupKey), visible.Line(strings.Join(d.Differs, ", ")))
	}
	if c.Differing > int64(len(c.First)) {
		fmt.Fprintln(&b, "… and more")
	}
	fmt.Fprintf(&b, "%d of %d calls differ, up to %s\n", c.Differing, c.Calls, place(c.Last))
	if _, err := io.WriteString(w, visible.Text(b.String())); err != nil {
		return err
	}
	if c.Differing > 0 {
		return ErrFindings
	}
	return nil
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
