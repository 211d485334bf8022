package main

import (
	"context"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// replace ends a daemon, and starts another one in its slot when the fault is over.
func replace(end func(*worker, context.Context) error) kind {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		w := f.workers[fault.Worker]
		begin()
		if err := end(w, ctx); err != nil {
			return err
		}
		pause(ctx, fault.For)
		return w.start(ctx)
	}
}

// stop holds the daemon still and lets it go on as if nothing had been.
func stop(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	w := f.workers[fault.Worker]
	begin()
	if err := w.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, fault.For)
	return w.process.Signal(syscall.SIGCONT)
}

// toDatabase is the link of the fault's worker.
func toDatabase(f *field, fault plan.Fault) *link.Link { return f.workers[fault.Worker].database }

// toReceiver is the link of the fault's process.
func toReceiver(f *field, fault plan.Fault) *link.Link { return f.receivers[fault.Process] }

func cut(of func(*field, plan.Fault) *link.Link) kind {
	return func(_ context.Context, f *field, fault plan.Fault, begin func()) error {
		begin()
		if of(f, fault).Cut() == 0 {
			return errMissed
		}
		return nil
	}
}

func stall(of func(*field, plan.Fault) *link.Link) kind {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		begin()
		l := of(f, fault)
		l.Stall()
		pause(ctx, fault.For)
		l.Resume()
		return nil
	}
}

// tear waits for something to tear.
func tear(of func(*field, plan.Fault) *link.Link, side link.Side) kind {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		begin()
		l := of(f, fault)
		torn := l.Tear(side)
		defer l.Resume()
		ctx, cancel := context.WithTimeout(ctx, fault.For)
		defer cancel()
		select {
		case <-torn:
			return nil
		case <-ctx.Done():
			return errMissed
		}
	}
}
