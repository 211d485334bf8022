package daemon

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// AsOwner runs f with connections to the database of the configuration, for the DDL of tables that producers write to.
func (c Config) AsOwner(ctx context.Context, f func(context.Context, *pgxpool.Pool) error) error {
	pool, _, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	return Reachable(f(ctx, pool))
}
