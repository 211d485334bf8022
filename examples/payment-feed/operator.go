package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	decide "github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// operator is called when the feed halts.
type operator struct {
	pool  *pgxpool.Pool
	store *cursor.Store
	out   io.Writer
}

// resolve waits for the halt, corrects the row, and lets the process try it again. With the daemon, these commands do it:
//
//	ordered-dispatcher status payments      shows the record and the error
//	psql                                    corrects the row
//	ordered-dispatcher retry payments --reason "the currency is corrected"
func (o operator) resolve(ctx context.Context) error {
	row, err := await(ctx, o.store, func(row cursor.Row) bool { return row.State == cursor.Halted })
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s is halted at record %s: %s\n", process, row.Failure.RecordID, row.Failure.Error)
	var charged int
	if err := o.pool.QueryRow(ctx, "SELECT count(*) FROM payments.charge").Scan(&charged); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%d events are charged, and all others wait\n", charged)
	if err := o.correct(ctx, row.Failure.RecordID); err != nil {
		return err
	}
	_, err = decide.New(o.store).Retry(ctx, process, cursor.Decision{
		Actor: "the operator", Reason: "the currency is corrected", Expect: &row.Failure.Position,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(o.out, "the operator has corrected the row, and the feed goes on")
	return nil
}

// correct corrects the record, and the usage that it was made of.
func (o operator) correct(ctx context.Context, recordID string) error {
	return pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			WITH record AS (
				UPDATE public.outbox SET payload = jsonb_set(payload, '{currency}', '"EUR"') WHERE id = $1::text::bigint
				RETURNING (payload ->> 'id')::bigint AS usage_id
			)
			UPDATE public.usage SET currency = 'EUR' FROM record WHERE usage.id = record.usage_id`, recordID)
		return err
	})
}
