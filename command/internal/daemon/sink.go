package daemon

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Sink is the receiver of a process.
type Sink struct {
	// Kind is its key below sink in the file.
	Kind string
	// Config has the settings below that key; nil if the file has a fault there.
	Config sinks.Config
}

// window returns how many records may be on their way unacknowledged; 0 means one.
func (s Sink) window() int { return knob.Int(s.Config, "window") }

// open makes the sink under the guarantee that it can keep, and adds it to the closers. It returns how long one call
// may take; 0 means the processor's default. If the process follows files of secrets, the sink is made anew when they
// change.
func (s Sink) open(d dependencies) (dispatch processor.Dispatch, timeout time.Duration, err error) {
	env := sinks.Environment{Stdout: d.stdout, Logger: quietly(d.logger), Checkpoint: d.checkpoint}
	opened, err := s.Config.Open(env)
	if err != nil {
		return dispatch, 0, err
	}
	if d.rotation != nil {
		return d.follow(opened, env), opened.Timeout, nil
	}
	if closer, ok := opened.Sink().(io.Closer); ok {
		d.closers.add(closer)
	}
	switch {
	case opened.Each != nil:
		dispatch = processor.Each(opened.Each)
	case opened.Pipeline != nil:
		dispatch = processor.Pipeline(opened.Pipeline)
	default:
		dispatch = processor.InTx(opened.InTx)
	}
	return dispatch, opened.Timeout, nil
}

// readSink returns an empty Sink if the file has a fault there.
func readSink(n yamlfile.Node, kinds []sinks.Spec) (s Sink) {
	known := make([]string, len(kinds))
	for i, kind := range kinds {
		known[i] = kind.Name
	}
	if n.IsScalar() {
		n.Fault(`expected keys with values, as in sink: {stdout: {}} or sink: {webhook: {url: "https://…"}}: the keys here are %s`, strings.Join(known, ", "))
		return s
	}
	m := n.Mapping(known...)
	switch names := m.Names(); {
	case !n.Sound():
		return s
	case len(names) == 0:
		n.Fault("there is no sink: write %s", knob.Either(known))
	case len(names) > 1:
		n.Fault("there are several sinks (%s): keep one", strings.Join(names, ", "))
	}
	for _, kind := range kinds {
		m.Read(kind.Name, func(n yamlfile.Node) { s = Sink{kind.Name, readConfig(n, kind)} })
	}
	return s
}

func readConfig(n yamlfile.Node, kind sinks.Spec) sinks.Config {
	config := kind.New()
	keys := n.Decode(config, nil)
	if !n.Sound() {
		return config
	}
	err := config.Validate()
	var at *knob.Fault
	switch {
	case errors.As(err, &at):
		node, found := keys.Get(at.Name)
		if !found {
			node = n
		}
		node.Refuse(at.Err)
	case err != nil:
		n.Fault("%v", err)
	}
	return config
}

// faultShared names processes that share a thing that may belong to only one of them.
func faultShared(processes []Process, node func(name string) yamlfile.Node) {
	owners := map[string]string{}
	for _, p := range processes {
		sink, ok := p.Sink.Config.(sinks.Exclusive)
		if !ok {
			continue
		}
		what, fix := sink.Owned(p.Name)
		if what == "" {
			continue
		}
		if owner, taken := owners[what]; taken {
			node(p.Name).Fault("its sink has the %s, and the sink of process %q has it, too: %s", what, owner, fix)
			continue
		}
		owners[what] = p.Name
	}
}

// sink compares the sink of a process with its receiver, if the sink can check it.
func (d *doctor) sink(ctx context.Context, p Process) error {
	checked, ok := p.Sink.Config.(sinks.Checked)
	if !ok {
		return nil
	}
	around := sinks.Around{Cursors: d.pool, Others: map[string]sinks.Config{}}
	for _, other := range d.config.Processes {
		if other.Name != p.Name {
			around.Others[other.Name] = other.Sink.Config
		}
	}
	found, err := checked.Check(ctx, p.Name, around)
	if err != nil {
		return err
	}
	for _, f := range found {
		d.find(p.Name, f.Severity, f.Fix, "%s", f.Problem)
	}
	refused := slices.ContainsFunc(found, func(f sinks.Finding) bool { return f.Severity == Refuse })
	if sink, ok := p.Sink.Config.(sinks.Privileged); ok && !refused {
		return d.sinkNeeds(ctx, p.Name, sink)
	}
	return nil
}

func (d *doctor) sinkNeeds(ctx context.Context, process string, sink sinks.Privileged) error {
	needs, err := sink.Needs(ctx, d.pool)
	if denied(err) { // no right to make temporary functions, which only this check needs
		d.find(process, Note, "", "doctor could not check whether the role may run the sink's statement: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	return d.missing(ctx, process, needs.Privileges)
}

// denied reports whether the server answered that the role may not.
func denied(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "42501"
}
