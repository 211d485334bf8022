package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

const (
	// pruneInterval is the pause between two passes over all rules. It is pruneFactor times as long as the passes took
	// if that is longer, unless they removed something.
	pruneInterval = 10 * time.Second
	pruneFactor   = 20
)

// keepPruning carries out the rules of the file until the crew ends. A pass that fails is tried again, and stops no
// delivery. Of several workers, one at a time removes rows of a table.
func (c *crew) keepPruning() error {
	<-c.announced
	if c.refused || len(c.config.Rules) == 0 {
		<-c.ctx.Done()
		return nil
	}
	logged := problems{}
	for c.ctx.Err() == nil {
		began, idle := time.Now(), true
		for _, r := range c.config.Rules {
			report, err := c.config.prune(c.ctx, c.pool, c.store, r, rules.Pass)
			idle = idle && !report.Removed()
			if c.ctx.Err() == nil || report.Removed() {
				c.logPass(logged, r, report, err)
			}
		}
		wait := c.pruneInterval
		if idle {
			wait = max(wait, pruneFactor*time.Since(began))
		}
		pause(c.ctx, wait)
	}
	return nil
}

// logPass writes one line for a pass, and another one when what holds rows back, or what fails, has changed.
func (c *crew) logPass(logged problems, r TableRule, report rules.Report, err error) {
	level := c.log.Info
	if !report.Removed() {
		level = c.log.Debug
	}
	level("retention: "+summary(report, false), "table", report.Table, "mode", report.Mode, "rows", report.Rows, "transactions", report.Batches,
		"partitions", report.Partitions, "position", visible.Cut(string(report.Through)))
	var held *operator.HeldError
	stranger := errors.As(err, &held) && !held.Ours()
	if errors.Is(err, rules.ErrBusy) && !stranger || errors.Is(err, context.Canceled) && c.ctx.Err() != nil {
		return
	}
	if c.monitor != nil {
		c.monitor.metrics.Pruned(r.Table, err)
	}
	if err != nil {
		if logged.changes(r.Table, err) {
			c.log.Warn("retention failed, and is tried again; deliveries go on", "table", report.Table, "err", err)
		}
		return
	}
	if logged.differs(r.Table+" held", heldBy(report)) { // the row that is held back changes with each pass
		c.log.Warn("retention: processes hold rows back that are older than keep", "table", report.Table, "err", report.Refused(r.Keep))
	}
	if why := strings.Join(report.Waiting, "; "); logged.differs(r.Table+" waiting", why) {
		c.log.Warn("retention: rows cannot go yet", "table", report.Table, "err", why)
	}
	logged.changes(r.Table, nil)
}

// differs reports whether there is a problem that differs from the last one of the name.
func (p problems) differs(name, problem string) bool {
	if problem == "" {
		p.changes(name, nil)
		return false
	}
	return p.changes(name, errors.New(problem))
}

// heldBy lists the processes that hold rows back, with their states; "" if none does.
func heldBy(r rules.Report) string {
	var all []string
	for _, h := range r.Holds {
		all = append(all, fmt.Sprintf("%s %s", h.Process, h.State))
	}
	return strings.Join(all, ", ")
}
