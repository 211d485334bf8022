package main

import (
	"context"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

func kill(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	w := f.workers[fault.Worker]
	begin()
	if err := w.end(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	pause(ctx, fault.For)
	return w.start(ctx)
}

func terminate(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	w := f.workers[fault.Worker]
	begin()
	if err := w.terminate(ctx); err != nil {
		return err
	}
	pause(ctx, fault.For)
	return w.start(ctx)
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

func cutDatabase(_ context.Context, f *field, fault plan.Fault, begin func()) error {
	return cut(f.workers[fault.Worker].database, begin)
}

func stallDatabase(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	return stall(ctx, f.workers[fault.Worker].database, fault.For, begin)
}

func tearDatabase(side link.Side) kindFunc {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		return tear(ctx, f.workers[fault.Worker].database, side, fault.For, begin)
	}
}

func cutReceiver(_ context.Context, f *field, fault plan.Fault, begin func()) error {
	return cut(f.receivers[fault.Process], begin)
}

func stallReceiver(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	return stall(ctx, f.receivers[fault.Process], fault.For, begin)
}

func tearReceiver(side link.Side) kindFunc {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		return tear(ctx, f.receivers[fault.Process], side, fault.For, begin)
	}
}

func cut(l *link.Link, begin func()) error {
	begin()
	if l.Cut() == 0 {
		return errMissed
	}
	return nil
}

func stall(ctx context.Context, l *link.Link, lasts time.Duration, begin func()) error {
	begin()
	l.Stall()
	pause(ctx, lasts)
	l.Resume()
	return nil
}

// tear waits for something to tear.
func tear(ctx context.Context, l *link.Link, side link.Side, patience time.Duration, begin func()) error {
	begin()
	torn := l.Tear(side)
	defer l.Resume()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-torn:
		return nil
	case <-ctx.Done():
		return errMissed
	}
}
