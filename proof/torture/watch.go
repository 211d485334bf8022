package main

import (
	"context"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// watcher asks how the processes stand, again and again, as an operator and as a Prometheus do, and notes what it is
// told. Whoever does not answer is asked again.
type watcher struct {
	log   *history.Log
	group sync.WaitGroup
	stop  context.CancelFunc
}

// Between two questions to the same one.
const (
	statusInterval = 500 * time.Millisecond
	scrapeInterval = time.Second
)

// watch starts a watcher. The caller closes it.
func (f *field) watch(ctx context.Context) (*watcher, error) {
	log, err := history.Create(f.histories, history.WatchActor)
	if err != nil {
		return nil, err
	}
	w := &watcher{log: log}
	ctx, w.stop = context.WithCancel(ctx)
	w.group.Go(func() { w.ask(ctx, statusInterval, f.askStatus) })
	for _, worker := range f.workers {
		w.group.Go(func() {
			w.ask(ctx, scrapeInterval, func(ctx context.Context) ([]history.Told, error) { return f.scrape(ctx, worker) })
		})
	}
	return w, nil
}

func (w *watcher) ask(ctx context.Context, interval time.Duration, question func(context.Context) ([]history.Told, error)) {
	for pause(ctx, interval) {
		answer, err := question(ctx)
		if err != nil {
			continue // the judge finds who says nothing for too long
		}
		for _, told := range answer {
			w.log.Note(told)
		}
	}
}

func (w *watcher) close() error {
	w.stop()
	w.group.Wait()
	return w.log.Close()
}
