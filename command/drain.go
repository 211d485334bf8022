package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// follow shows on a bar how far a drain is, until ctx ends. It asks on connections of its own, and shows nothing while
// it gets no answer.
func follow(ctx context.Context, config daemon.Config, bar *screen.Bar) {
	reader, err := daemon.NewStatusReader(ctx, daemon.StatusConfig{Config: config})
	if err != nil {
		return
	}
	defer reader.Close()
	defer bar.Show("")
	ticker := time.NewTicker(screen.WatchInterval)
	defer ticker.Stop()
	d := newDrain()
	for {
		if err := d.look(ctx, reader); err == nil && ctx.Err() == nil {
			bar.Show(d.progress().Line(bar.Width()))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// drain is how far processes have come since it began.
type drain struct {
	last      map[string]cursor.Row // at the last look; without a time if there was no cursor
	delivered map[string]int64      // records since it began
	total     map[string]int64      // records until it has caught up
	more      bool                  // more records waited than are counted
	seen      []count               // of the last looks
}

func newDrain() *drain {
	return &drain{last: map[string]cursor.Row{}, delivered: map[string]int64{}, total: map[string]int64{}}
}

// count is how many records were delivered at a moment.
type count struct {
	at        time.Time
	delivered int64
}

// look counts what is delivered. Until it knows how much waits for each process, it asks for that, too.
func (d *drain) look(ctx context.Context, reader *daemon.StatusReader) error {
	if len(d.total) == 0 || len(d.total) < len(d.last) {
		all, err := reader.Read(ctx)
		if err != nil {
			return err
		}
		d.begin(all, daemon.CountOf(all))
		return nil
	}
	now, err := reader.Count(ctx)
	if err == nil {
		d.note(now)
	}
	return err
}

// begin notes how much waits for each process, as far as it is known. A process without a cursor is asked again.
func (d *drain) begin(all []daemon.Status, now daemon.Counted) {
	for _, s := range all {
		if _, known := d.last[s.Process]; !known {
			d.last[s.Process] = s.Row
		}
	}
	d.note(now)
	for _, s := range all {
		if _, known := d.total[s.Process]; !known && s.Lag != nil && !s.New {
			d.total[s.Process] = d.delivered[s.Process] + s.Lag.Records
			d.more = d.more || s.Lag.Records >= table.MaxLagRecords
		}
	}
}

// memory is how far back a rate goes.
const memory = 20 * time.Second

func (d *drain) note(now daemon.Counted) {
	c := count{at: now.At}
	for process, was := range d.last {
		if row, has := now.Rows[process]; has && !row.UpdatedAt.IsZero() {
			n, _ := row.DeliveredSince(was)
			if was.UpdatedAt.IsZero() { // its numbers may begin past those of a server that was lost
				n = row.Sequence % cursor.HistoryGap
			}
			d.delivered[process] += n
			d.last[process] = row
		}
		c.delivered += d.delivered[process]
	}
	d.seen = append(d.seen, c)
	d.seen = slices.DeleteFunc(d.seen, func(c count) bool { return now.At.Sub(c.at) > memory })
}

func (d *drain) progress() screen.Progress {
	p := screen.Progress{More: d.more}
	for _, total := range d.total {
		p.Total += total
	}
	first, last := d.seen[0], d.seen[len(d.seen)-1]
	p.Delivered = last.delivered
	if span := last.at.Sub(first.at).Seconds(); span > 0 {
		p.Rate = float64(last.delivered-first.delivered) / span
	}
	return p
}

// runWithBar runs a drain with a bar, if there is one. At its end, the bar is gone, and a line says how much was delivered.
func runWithBar(ctx context.Context, config daemon.Config, bar *screen.Bar, run func() error) error {
	if bar == nil {
		return run()
	}
	began := time.Now()
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(ctx, config, bar)
	}()
	err := run()
	stop()
	<-done
	if err == nil {
		fmt.Fprintf(bar, "every process has caught up, after %s\n", screen.Age(time.Since(began).Round(time.Second)))
	}
	return err
}
