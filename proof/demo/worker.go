package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// worker is a process of the operating system.
type worker struct {
	name    string
	process *throwaway.Process
	dir     *throwaway.Dir
	dismiss atomic.Bool // its end is our doing
}

// kill is kill -9: the worker learns nothing of it.
func (w *worker) kill(ctx context.Context) error {
	w.dismiss.Store(true)
	return w.process.Stop(ctx, syscall.SIGKILL)
}

func (w *worker) watch(fail func(error)) {
	<-w.process.Done()
	if !w.dismiss.Load() {
		fail(fmt.Errorf("worker %s (process %d) ended by itself (%v); %s\nCorrect what the log names, then run the demo again",
			w.name, w.process.Pid(), w.process.Err(), w.tail()))
	}
}

func (w *worker) log() string { return "worker-" + w.name + ".log" }

// logLines is how much of a log an error shows.
const logLines = 15

// tail is the end of the log, for errors.
func (w *worker) tail() string {
	text := w.dir.Tail(w.log(), logLines)
	if text == "" {
		return "its log is empty"
	}
	return "the end of its log:\n    " + strings.ReplaceAll(text, "\n", "\n    ")
}
