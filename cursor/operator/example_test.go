package operator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// A process has halted at a record that its receiver refuses. Somebody looks at
// it, decides that the record is passed over, and leaves word why.
func ExampleOperator_Skip() {
	ctx := context.Background()
	store, drop := haltedProcess(ctx)
	defer drop()

	row, err := store.Look(ctx, "booking_sms")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s at record %s: %s\n", row.State, row.Failure.RecordID, row.Failure.Error)
	change, err := operator.New(store).Skip(ctx, "booking_sms", cursor.Decision{
		Actor:  "alice",
		Reason: "no such number, the customer was called",
		Expect: &row.Failure.Position, // that record, and no other that fails by then
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s behind record %s\n", change.After.State, change.Before.Failure.RecordID)

	events, err := operator.New(store).History(ctx, "booking_sms", 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range events {
		fmt.Printf("%s by %s: %q\n", e.Action, e.Actor, e.Reason)
	}
	// Output:
	// halted at record 42: answered 422
	// running behind record 42
	// skip by alice: "no such number, the customer was called"
	// halt by worker 1: "answered 422"
	// create by worker 1: ""
}

func haltedProcess(ctx context.Context) (*cursor.Store, func()) {
	address, drop, err := pgtest.Create(ctx, "example")
	must(err)
	_, err = migrations.Up(ctx, migrations.Config{ConnString: address})
	must(err)
	pool, err := pgxpool.New(ctx, address)
	must(err)
	store, err := cursor.NewStore(pool, cursor.Config{Worker: "worker 1"})
	must(err)
	_, err = store.Create(ctx, "booking_sms", "")
	must(err)
	lease, err := store.Acquire(ctx, "booking_sms")
	must(err)
	must(lease.Halt(ctx, cursor.Failure{Position: "p42", RecordID: "42", Attempts: 1, First: time.Now(), Last: time.Now(), Error: "answered 422"}))
	return store, func() {
		pool.Close()
		must(drop(ctx))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
