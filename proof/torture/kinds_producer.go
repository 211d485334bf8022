package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// slow is the producers whose transactions take their time, one for each table.
type slow struct{ producers map[string]*producer }

// strike has a transaction of a table stay open, or prepared, for as long as the fault lasts.
func (s slow) strike(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	p := s.producers[fault.Table]
	p.load = string(fault.Kind)
	p.random = rand.New(rand.NewPCG(fault.Choice, 0))
	conn, err := p.session(ctx)
	if err != nil {
		return missed(err)
	}
	begin()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fault.For+time.Minute)
	defer cancel()
	if fault.Kind == history.ForgottenPrepared {
		p.prepare(ctx, conn, fault.Table)
		pause(ctx, fault.For)
		for _, x := range p.prepared {
			if err := f.database.insist(ctx, func(conn *pgx.Conn) error { return p.decide(ctx, conn, x) }); err != nil {
				return err
			}
		}
		p.prepared = nil
		return nil
	}
	p.inTx(ctx, conn, fault.Table, end{"COMMIT", history.Committed}, func(ctx context.Context, conn *pgx.Conn, tx, table string) error {
		if err := p.insertSome(ctx, conn, tx, table); err != nil {
			return err
		}
		pause(ctx, fault.For)
		return p.insertSome(ctx, conn, tx, table)
	})
	return nil
}
