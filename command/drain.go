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
	d := drain{from: map[string]int64{}, to: map[string]int64{}}
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
	from, to map[string]int64 // sequences: where it began, and where it has caught up
	more     bool             // more records waited than are counted
	seen     []count          // of the last looks
}

// count is how many records were delivered at a moment.
type count struct {
	at        time.Time
	delivered int64
}

// look counts what is delivered. Until it knows how much waits for each process, it asks for that, too.
func (d *drain) look(ctx context.Context, reader *daemon.StatusReader) error {
	if len(d.to) == 0 || len(d.to) < len(d.from) {
		all, err := reader.Read(ctx)
		if err != nil {
			return err
		}
		d.begin(all)
		d.note(daemon.CountOf(all))
		return nil
	}
	now, err := reader.Count(ctx)
	if err == nil {
		d.note(now)
	}
	return err
}

// begin notes how much waits for each process, as far as it is known. A process without a cursor is asked again.
func (d *drain) begin(all []daemon.Status) {
	for _, s := range all {
		if _, known := d.to[s.Process]; known {
			continue
		}
		if _, known := d.from[s.Process]; !known && s.New {
			d.from[s.Process] = -1
			continue
		}
		from, known := d.from[s.Process]
		switch {
		case !known:
			d.from[s.Process] = s.Sequence
		case from < 0 && !s.New: // its numbers may begin past those of a server that was lost
			d.from[s.Process] = s.Sequence - s.Sequence%cursor.HistoryGap
		}
		if s.Lag != nil {
			d.to[s.Process] = s.Sequence + s.Lag.Records
			d.more = d.more || s.Lag.Records >= table.MaxLagRecords
		}
	}
}

// memory is how far back a rate goes.
const memory = 20 * time.Second

func (d *drain) note(now daemon.Counted) {
	c := count{at: now.At}
	for process, from := range d.from {
		if delivered := now.Sequences[process] - from; from >= 0 && delivered > 0 && delivered < cursor.HistoryGap {
			c.delivered += delivered
		}
	}
	d.seen = append(d.seen, c)
	d.seen = slices.DeleteFunc(d.seen, func(c count) bool { return now.At.Sub(c.at) > memory })
}

func (d *drain) progress() screen.Progress {
	p := screen.Progress{More: d.more}
	for process, to := range d.to {
		p.Total += to - max(0, d.from[process])
	}
	first, last := d.seen[0], d.seen[len(d.seen)-1]
	p.Delivered = last.delivered
	if span := last.at.Sub(first.at).Seconds(); span > 0 {
		p.Rate = float64(last.delivered-first.delivered) / span
	}
	return p
}

// drains runs a drain with a bar, if there is one. At its end, the bar is gone, and a line says how much was delivered.
func drains(ctx context.Context, config daemon.Config, bar *screen.Bar, run func() error) error {
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
