package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
)

const (
	accounts = 5
	moves    = 400 // before the new version begins, while it is built, and after the switch
)

type bank struct {
	pool *pgxpool.Pool
	out  io.Writer
}

// story writes events throughout. The first version runs from the beginning, the second one from the middle on.
func (b bank) story(ctx context.Context) error {
	store, err := cursor.NewStore(b.pool, cursor.Config{})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	versions, ctx := errgroup.WithContext(ctx)
	start := func(process, table string) error {
		p, err := populator(ctx, b.pool, store, process, table)
		if err == nil {
			versions.Go(func() error { return p.Run(ctx) })
		}
		return err
	}

	if err := start("balances@v1", "v1.balance"); err != nil {
		return err
	}
	if err := b.move(ctx, 0, moves); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "version 1 serves: %d events are written\n", moves)

	if err := start("balances@v2", "v2.balance"); err != nil {
		return err
	}
	writing := make(chan error, 1)
	go func() { writing <- b.move(ctx, moves, 2*moves) }()
	if err := b.takeOver(ctx, store); err != nil {
		return err
	}
	if err := <-writing; err != nil {
		return err
	}
	if err := b.move(ctx, 2*moves, 3*moves); err != nil {
		return err
	}
	if err := b.verdict(ctx, store); err != nil {
		return err
	}
	stop()
	return versions.Wait()
}

// move writes events: each is one transaction, as it would be beside the business data.
func (b bank) move(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		m := moved{Account: fmt.Sprint("account-", i%accounts), Cents: int64(i%97) - 30}
		err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
			return outbox.Add(ctx, tx, outbox.Record{Type: "account.moved", AggregateType: "account", AggregateID: m.Account, Payload: m})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeOver compares the two versions and makes readers use the second one.
func (b bank) takeOver(ctx context.Context, store *cursor.Store) error {
	found, err := readmodel.Compare(ctx, store, readmodel.Comparison{
		Old: "balances@v1", New: "balances@v2", Hold: "public.outbox", HoldFor: 10 * time.Second,
		SQL: "(SELECT account, cents FROM v1.balance EXCEPT SELECT account, cents FROM v2.balance) UNION ALL (SELECT account, cents FROM v2.balance EXCEPT SELECT account, cents FROM v1.balance)",
	})
	if err != nil {
		return err
	}
	if len(found.Rows) > 0 {
		return fmt.Errorf("the versions differ: %v", found.Rows)
	}
	fmt.Fprintln(b.out, "version 2 is built beside it, and no balance differs")
	who := cursor.Decision{Actor: "the example", Reason: "the number of movements is shown, too"}
	switched, err := operator.New(store).Switch(ctx, "balances@v1", "balances@v2", who, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "CREATE OR REPLACE VIEW public.balance AS SELECT account, cents, moves FROM v2.balance")
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "readers use version 2 now; version 1 stood still for %v\n", switched.Held.Round(time.Millisecond))
	return nil
}

// verdict waits until both versions have applied all events, and compares what readers see with the events.
func (b bank) verdict(ctx context.Context, store *cursor.Store) error {
	for _, process := range []string{"balances@v1", "balances@v2"} {
		for {
			row, err := store.Look(ctx, process)
			if err != nil {
				return err
			}
			if row.Sequence >= 3*moves {
				break
			}
			if row.State == cursor.Halted {
				return fmt.Errorf("%s is halted: %s", process, row.Failure.Error)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	var wrong int
	err := b.pool.QueryRow(ctx, `
		SELECT count(*)
		FROM (SELECT payload ->> 'account' AS account, sum((payload ->> 'cents')::bigint) AS cents, count(*) AS moves FROM public.outbox GROUP BY 1) events
		FULL JOIN public.balance USING (account)
		WHERE (events.cents, events.moves) IS DISTINCT FROM (balance.cents, balance.moves)`).Scan(&wrong)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "verdict: %d events, %d accounts, %d balances that differ from the sum of their events\n", 3*moves, accounts, wrong)
	if wrong > 0 {
		return errors.New("the read model is wrong")
	}
	return nil
}
