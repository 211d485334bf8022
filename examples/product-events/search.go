package main

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// index is the effect of the search indexer. It also counts, to show that each message is applied once.
func index(ctx context.Context, tx pgx.Tx, p product) error {
	_, err := tx.Exec(ctx, `INSERT INTO search.product AS s (id, title, writes) VALUES ($1, $2, 1)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, writes = s.writes + 1`, p.ID, p.Title)
	return err
}
