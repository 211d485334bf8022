package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// answerBy gives the receiver a script for the next attempt of a process.
func answerBy(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	s := newScript(fault.Kind, fault.ID, fault.Choice)
	begin()
	f.receiver.arm(fault.Process, s)
	ctx, cancel := context.WithTimeout(ctx, fault.For)
	defer cancel()
	select {
	case <-s.taken:
	case <-ctx.Done():
		if f.receiver.disarm(fault.Process, s) {
			return errMissed
		}
	}
	return nil
}

// poison has a record refused for good, waits for the process to halt, and has an operator decide about it.
func poison(decide func(context.Context, *field, string) error) kind {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		if err := answerBy(ctx, f, fault, begin); err != nil {
			return err
		}
		f.decideOnHalt(ctx, fault, decide)
		return nil
	}
}

// decideOnHalt has an operator decide about a process that is about to halt.
func (f *field) decideOnHalt(ctx context.Context, fault plan.Fault, decide func(context.Context, *field, string) error) {
	halt, cancel := context.WithTimeout(ctx, haltPatience)
	defer cancel()
	for !f.halted(halt, fault.Process) {
		if !pause(halt, 20*time.Millisecond) {
			return // its worker did not live to halt it, or does so later: see doRounds
		}
	}
	pause(ctx, time.Duration(fault.Choice%500)*time.Millisecond)
	_ = decide(ctx, f, fault.Process) // the database may be away: see doRounds
}

// unnoticed is a halt that nobody decides about for as long as the fault lasts.
func unnoticed(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	f.unnoticed.Store(fault.Process, true)
	defer f.unnoticed.Delete(fault.Process)
	return poison(func(ctx context.Context, f *field, process string) error {
		pause(ctx, fault.For)
		return retry(ctx, f, process)
	})(ctx, f, fault, begin)
}

// outage has all attempts of a process refused for as long as the fault lasts.
func outage(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	s := newScript(fault.Kind, fault.ID, fault.Choice)
	begin()
	f.receiver.arm(fault.Process, s)
	pause(ctx, fault.For)
	f.receiver.disarm(fault.Process, s)
	select {
	case <-s.taken:
		return nil
	default:
		return errMissed
	}
}

const haltPatience = 5 * time.Second

const haltedSQL = `/* torture.halted */
SELECT EXISTS (SELECT 1 FROM dispatch.cursor WHERE process_name = $1 AND state = 'halted')`

func (f *field) halted(ctx context.Context, process string) bool {
	var halted bool
	err := f.database.do(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, haltedSQL, process).Scan(&halted) })
	return err == nil && halted
}
