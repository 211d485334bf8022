package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// TargetsConfig names the targets that get a test message.
type TargetsConfig struct {
	Config Config
	// Targets are the names of those; nil for all of the file.
	Targets []string
	// Worker is the sender in the message.
	Worker string
}

// ErrUntold means that a target could not be told, and that was printed.
var ErrUntold = errors.New("a target did not get the message")

// TestTargets sends a marked message to targets, one after the other, and prints a line for each. It needs no database.
// It returns ErrUntold if one of them did not get it.
func TestTargets(ctx context.Context, w io.Writer, c TargetsConfig) error {
	targets, err := c.targets()
	if err != nil {
		return err
	}
	var failed error
	for _, t := range targets {
		sender, err := notify.New(t)
		if err != nil {
			return &UsageError{err}
		}
		now := time.Now()
		line := fmt.Sprintf("%s: sent\n", sender)
		if err := sender.Send(ctx, notify.Message{ID: "alarm_test_" + digestOf(t.Name, now.String()), At: now, Worker: c.Worker, Console: c.Config.Notify.Console, Test: true}); err != nil {
			failed = ErrUntold
			line = fmt.Sprintf("%s: not sent: %s\n", sender, visible.Line(err.Error()))
		}
		if _, err := io.WriteString(w, visible.Text(line)); err != nil {
			return err
		}
	}
	return failed
}

func (c TargetsConfig) targets() (all []notify.Target, err error) {
	known := c.Config.Notify.names()
	if len(known) == 0 {
		return nil, usage("the file has no target: write notify: {targets: {…}}")
	}
	for _, name := range c.Targets {
		if !slices.Contains(known, name) {
			return nil, usage("there is no target %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, t := range c.Config.Notify.Targets {
		if len(c.Targets) == 0 || slices.Contains(c.Targets, t.Name) {
			all = append(all, t)
		}
	}
	return all, nil
}

// names returns the names of the targets in the order of the file.
func (n Notify) names() (names []string) {
	for _, t := range n.Targets {
		names = append(names, t.Name)
	}
	return names
}

// targets tries the address of each target, without a message.
func (d *doctor) targets(ctx context.Context) {
	for _, t := range d.config.Notify.Targets {
		sender, err := notify.New(t)
		if err == nil {
			err = sender.Reach(ctx)
		}
		if err != nil {
			d.find("", Warn, "correct the target in the file (an authority that is not the system's belongs into its tls), or let this machine reach it; then try it: ordered-dispatcher notify-test "+visible.Shell(t.Name)+" -c FILE",
				"a target of notify cannot be reached: %v", err)
		}
	}
	for _, p := range d.config.Processes {
		if len(d.config.Notify.Targets) > 0 && d.config.objective(p) > 0 {
			_ = answer.Within(ctx, d.patience, func(ctx context.Context) error { return d.aged(ctx, p) })
		}
	}
}

// aged looks whether the age of a record is known. Other checks name a source that cannot be read.
func (d *doctor) aged(ctx context.Context, p Process) error {
	source, err := d.config.keys(p, d.pool)
	if err != nil {
		return err
	}
	end, err := source.End(ctx)
	if err != nil {
		return err
	}
	lag, err := source.Lag(ctx, end)
	if err == nil && !lag.Aged {
		d.find(p.Name, Warn, "name a column with the time of each record in source.columns.created_at, or watch ordered_dispatcher_lag_records",
			"no one is told of its lag: the source has no created_at column, so the age of a record is not known")
	}
	return err
}

// exposures finds the targets to which secrets go without TLS.
func (n Notify) exposures() (all []exposure) {
	for _, t := range n.Targets {
		if host := t.Exposed(); host != "" {
			all = append(all, exposure{"", fmt.Sprintf("secrets of the target %s of notify are sent to %s in the clear, so others on the network could read them", t.Name, host), "use https"})
		}
	}
	return all
}
