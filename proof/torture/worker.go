package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// worker is a slot in which a daemon runs. Its methods are for one goroutine at a time.
type worker struct {
	name     string
	dir      *throwaway.Dir
	program  string
	database *link.Link

	process *throwaway.Process
	mu      sync.Mutex
	metrics string                      // host:port
	dismiss map[*throwaway.Process]bool // its end is our doing
	failed  func(error)
}

func (w *worker) log() string { return "worker-" + w.name + ".log" }

func (w *worker) config() string { return w.name + ".yaml" }

// start runs the daemon, and returns when it handles signals. An end that nobody asked for ends the run.
func (w *worker) start(ctx context.Context) error {
	before := len(w.text(0))
	process, err := w.dir.Start(w.log(), w.program, "--log-level", "debug", "run", "-c", w.dir.Path(w.config()), "--listen", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start worker %s: %w", w.name, err)
	}
	w.process = process
	go w.watch(process)
	for {
		if serving := serving.FindSubmatch(w.text(before)); serving != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.metrics = string(serving[1])
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// serving is the line of the log that tells where the metrics are. Signals are handled by then.
var serving = regexp.MustCompile(`"serving /metrics[^\n]*"address":"([^"]+)"`)

// listens is where the daemon of the slot, the last one if there is none now, serves its metrics.
func (w *worker) listens() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.metrics
}

// text is the log of all daemons that ran in the slot, from an offset on.
func (w *worker) text(from int) []byte {
	file, err := os.Open(w.dir.Path(w.log()))
	if err != nil {
		return nil
	}
	defer file.Close()
	text, _ := io.ReadAll(io.NewSectionReader(file, int64(from), maxLog))
	return text
}

const maxLog = 1 << 40

func (w *worker) watch(process *throwaway.Process) {
	<-process.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dismiss[process] {
		w.failed(fmt.Errorf("worker %s (process %d) ended by itself: %v; the end of its log:\n%s",
			w.name, process.Pid(), process.Err(), w.dir.Tail(w.log(), 15)))
	}
	delete(w.dismiss, process)
}

// end sends a signal that ends the daemon, and waits for it.
func (w *worker) end(ctx context.Context, signal os.Signal) error {
	w.mu.Lock()
	w.dismiss[w.process] = true
	w.mu.Unlock()
	return w.process.Stop(ctx, signal)
}

// kill ends the daemon as a crash would.
func (w *worker) kill(ctx context.Context) error { return w.end(ctx, syscall.SIGKILL) }

// stopTimeout is far beyond the grace period of a daemon, on whatever machine.
const stopTimeout = 5 * time.Minute

// terminate ends the daemon in good order, and reports one that does not.
func (w *worker) terminate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := w.end(ctx, syscall.SIGTERM)
	if err == nil {
		err = w.process.Err()
	}
	if err != nil {
		return fmt.Errorf("end worker %s with SIGTERM: %w; the end of its log:\n%s", w.name, err, w.dir.Tail(w.log(), 15))
	}
	return nil
}
