package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// ordersSQL counts the orders whose events are not those of the entries, in the same order.
	ordersSQL = `
SELECT count(*), count(*) FILTER (WHERE sent.events IS DISTINCT FROM added.events)
FROM (SELECT aggregate_id AS order_id, array_agg(type ORDER BY created_at, id) AS events FROM public.outbox GROUP BY 1) sent
FULL JOIN (SELECT order_id, array_agg(event ORDER BY id) AS events FROM loyalty.entry GROUP BY 1) added USING (order_id)`

	// accountsSQL counts the customers whose points are not those of their orders.
	accountsSQL = `
SELECT count(*), count(*) FILTER (WHERE earned.points IS DISTINCT FROM account.points)
FROM (SELECT customer, sum(CASE WHEN cancelled THEN 0 ELSE cents / 100 END) AS points FROM public.orders GROUP BY 1) earned
FULL JOIN loyalty.account USING (customer)`

	// inTimeSQL returns how many percent of the events had their points within $1.
	inTimeSQL = `SELECT 100.0 * count(*) FILTER (WHERE added_at - ordered_at <= $1) / count(*) FROM loyalty.entry`
)

// verdict compares the orders with the points.
func verdict(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	var orders, wrongOrders, customers, wrongCustomers int
	if err := pool.QueryRow(ctx, ordersSQL).Scan(&orders, &wrongOrders); err != nil {
		return err
	}
	if err := pool.QueryRow(ctx, accountsSQL).Scan(&customers, &wrongCustomers); err != nil {
		return err
	}
	var inTime float64
	if err := pool.QueryRow(ctx, inTimeSQL, lag.within).Scan(&inTime); err != nil {
		return err
	}
	objective := "met"
	if inTime < float64(lag.percent) {
		objective = "missed, as it should be here"
	}
	fmt.Fprintf(out, "objective: %d %% within %v: %s\n", lag.percent, lag.within, objective)
	fmt.Fprintf(out, "verdict: %d orders, %d of them without their points, twice or out of order; %d customers, %d with wrong points\n",
		orders, wrongOrders, customers, wrongCustomers)
	if wrongOrders+wrongCustomers > 0 {
		return errors.New("the points are not those of the orders")
	}
	return nil
}
