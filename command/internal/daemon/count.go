package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// The pause between two rounds of counting is countFactor times the duration of the last round. So counting is a
// small part of the load. The pause is at least one interval of the looks, and at most maxCountIntervals of them, so
// that the lag is never old.
const (
	countFactor       = 20
	maxCountIntervals = 12
)

// counter counts, again and again, the records that wait after each cursor. It also looks for records that appeared
// before a cursor after the cursor had passed.
type counter struct {
	store   *cursor.Store
	watched map[string]watched // by process
	metrics *metrics.Metrics
	log     *slog.Logger
	every   time.Duration
	said    said
	trails  map[string]trail // by process
	absent  bool             // a row could not be read in the last round

	saidLetters said
}

// run counts until ctx ends.
func (c *counter) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		c.absent = false
		for _, w := range c.watched {
			c.count(ctx, w)
		}
		c.letters(ctx)
		pause(ctx, c.interval(time.Since(began)))
	}
}

func (c *counter) interval(took time.Duration) time.Duration {
	if c.absent {
		return min(awayInterval, c.every)
	}
	return min(max(c.every, countFactor*took), maxCountIntervals*c.every)
}

// count updates the metrics with the lag of one process. If its row cannot be read, the looker reports that.
func (c *counter) count(ctx context.Context, w watched) {
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	row, err := c.store.Look(asking, w.Name)
	if err != nil {
		c.absent = true
		return
	}
	c.watch(asking, w, row.Position)
	lag, err := w.count.Lag(asking, row.Position)
	err = answer.Overdue(ctx, asking, answer.FromDatabase, lookTimeout, err)
	if ctx.Err() != nil {
		return
	}
	c.note(w.Name, err)
	if err != nil {
		c.metrics.NoLag(w.Name)
		return
	}
	count := metrics.Lag{Process: w.Name, Records: lag.Records}
	if lag.Aged {
		count.Age = &lag.Age
	}
	c.metrics.Lag(count)
}

// note logs a problem if it differs from the last one.
func (c *counter) note(process string, err error) {
	if c.said.news(process, err) && err != nil {
		c.log.Warn("the lag cannot be counted: the metrics have none", "process", process, "err", err)
	}
}
