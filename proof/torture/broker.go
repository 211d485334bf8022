package main

import (
	"context"
	"errors"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// messageBroker is a server that processes publish to, and that keeps what came until all is over.
type messageBroker interface {
	Addr() string
	Kill(context.Context) error
	Start(context.Context) error
	Close(context.Context) error
	// read returns all messages of a process, in the order in which they lie there.
	read(ctx context.Context, process string) ([]history.Applied, error)
}

// openBrokers starts one for each kind of sink that publishes.
func (f *field) openBrokers(ctx context.Context) error {
	return errors.Join(f.openQueues(ctx), f.openStreams(ctx))
}

// killBroker ends one as a crash would, and starts it again on what its disk has.
func killBroker(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	victim := f.brokers[fault.Broker]
	begin()
	if err := victim.Kill(ctx); err != nil {
		return err
	}
	pause(ctx, fault.For)
	return victim.Start(ctx)
}
