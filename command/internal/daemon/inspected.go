package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// inspected records for each source whether it was inspected once without an error. A daemon is ready only after
// that. A process that is paused or halted, or that another worker runs, does not read its source. So a missing grant
// would show only when this worker takes over. The processes are those of watched, by name; the map never changes.
type inspected map[string]*atomic.Bool

// fault names the first process whose source could not be inspected yet; nil if there is none. A process that has
// ended needs no source.
func (i inspected) fault(ended func(process string) bool) error {
	var first string
	for process, done := range i {
		if !done.Load() && !ended(process) && (first == "" || process < first) {
			first = process
		}
	}
	if first == "" {
		return nil
	}
	return fmt.Errorf("process %q: its source could not be inspected yet: see the log, or run doctor", first)
}

// inspect looks at the sources that were not inspected yet. It logs a problem if it differs from the last one.
func (l *looker) inspect(ctx context.Context) {
	for process, w := range l.watched {
		done := l.inspected[process]
		if done.Load() {
			continue
		}
		err := answer.Within(ctx, lookTimeout, func(ctx context.Context) error {
			findings, err := w.count.Inspect(ctx)
			at := slices.IndexFunc(findings, func(f table.Finding) bool { return f.Severity == table.Refuse })
			if err == nil && at >= 0 {
				err = fmt.Errorf("%s", findings[at])
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			done.Store(true)
		case l.saidSources.news(process, err):
			l.log.Warn("the source cannot be inspected: the worker is not ready until it can", "process", process, "err", err)
		}
	}
}
