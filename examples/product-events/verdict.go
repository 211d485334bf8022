package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// searchSQL counts the products whose title is not the one in the index, or that the index has written another number of
// times than they were changed.
const searchSQL = `
SELECT count(*)
FROM (SELECT p.id, p.title, count(*) AS changes FROM public.product p JOIN public.outbox o ON o.aggregate_id = p.id GROUP BY p.id) made
FULL JOIN search.product found USING (id)
WHERE (made.title, made.changes) IS DISTINCT FROM (found.title, found.writes)`

// verdict compares the products with the index and the cache.
func verdict(ctx context.Context, pool *pgxpool.Pool, cache *cache, out io.Writer) error {
	var wrong, events int
	if err := pool.QueryRow(ctx, searchSQL).Scan(&wrong); err != nil {
		return err
	}
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM public.outbox").Scan(&events); err != nil {
		return err
	}
	rows, err := pool.Query(ctx, "SELECT id, title FROM public.product")
	if err != nil {
		return err
	}
	titles := map[string]string{}
	var id, title string
	_, err = pgx.ForEachRow(rows, []any{&id, &title}, func() error { titles[id] = title; return nil })
	if err != nil {
		return err
	}
	stale := cache.stale(titles)
	fmt.Fprintf(out, "verdict: %d events of %d products, %d wrong in the index, %d out of date in the cache\n", events, len(titles), wrong, stale)
	if wrong+stale > 0 {
		return errors.New("the subscribers do not have what the products are")
	}
	return nil
}
