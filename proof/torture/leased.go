package main

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// leasedSQL asks the server for the sessions of workers that have locked a row: one that finds it locked has no
// transaction id.
const leasedSQL = `/* torture.leased */
SELECT application_name
FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL AND (starts_with(application_name, $1) OR starts_with(application_name, $2))`

// leasedInterval is less than any two looks of status are apart.
const leasedInterval = 20 * time.Millisecond

// leased asks again and again, until it is stopped, for which processes a worker has the row. What it was told in that
// time is the answer. A server that is away has nobody deliver.
func (d *database) leased(ctx context.Context) (stop func() map[string]bool) {
	ctx, cancel := context.WithCancel(ctx)
	answer := make(chan map[string]bool, 1)
	go func() {
		seen := map[string]bool{}
		_ = d.do(ctx, func(conn *pgx.Conn) error {
			for {
				if err := askLeased(ctx, conn, seen); err != nil || !pause(ctx, leasedInterval) {
					return err
				}
			}
		})
		answer <- seen
	}()
	return func() map[string]bool {
		cancel()
		return <-answer
	}
}

// askLeased adds the processes of which a worker has the row now.
func askLeased(ctx context.Context, conn *pgx.Conn, seen map[string]bool) error {
	rows, err := conn.Query(ctx, leasedSQL, cursor.ApplicationLease, cursor.ApplicationTx)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		seen[strings.TrimPrefix(strings.TrimPrefix(name, cursor.ApplicationLease), cursor.ApplicationTx)] = true
	}
	return err
}
