package prove

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// opened is a table that ours can read.
type opened struct {
	source   *table.Source
	config   table.Config
	name     string
	order    string // the columns, for people
	findings []string
}

// open makes the source, and refuses a table that it cannot read in order. Without an order, it takes the first of
// (created_at, id) and id that the table allows.
func open(ctx context.Context, pool *pgxpool.Pool, c table.Config) (*opened, error) {
	if c.Order != "" {
		return openAs(ctx, pool, c)
	}
	c.Order = table.CreatedAt
	first, err := openAs(ctx, pool, c)
	if err == nil || !errors.Is(err, ErrRefused) {
		return first, err
	}
	c.Order = table.ID
	second, otherErr := openAs(ctx, pool, c)
	if otherErr != nil {
		return nil, fmt.Errorf("%w\nordered by the id alone: %w", err, otherErr)
	}
	return second, nil
}

// ErrRefused means that the table cannot be read in order as it is.
var ErrRefused = errors.New("the table cannot be read in order")

func openAs(ctx context.Context, pool *pgxpool.Pool, c table.Config) (*opened, error) {
	c.KeysOnly, c.Logger = true, slog.New(slog.DiscardHandler)
	source, err := table.New(pool, c)
	if err != nil {
		return nil, err
	}
	findings, err := source.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	o := &opened{source: source, config: c, order: orderText(c)}
	var refused []string
	for _, f := range findings {
		if f.Severity == table.Refuse {
			refused = append(refused, f.String())
		}
		o.findings = append(o.findings, f.String())
	}
	if len(refused) > 0 {
		return nil, fmt.Errorf("%w by %s: %s", ErrRefused, o.order, strings.Join(refused, "; "))
	}
	o.name, err = source.Name(ctx)
	return o, err
}

// orderText names the columns of the order.
func orderText(c table.Config) string {
	id, at := c.Columns.ID, c.Columns.CreatedAt
	if id == "" {
		id = "id"
	}
	if at == "" {
		at = "created_at"
	}
	if c.Order == table.ID {
		return id
	}
	return at + ", " + id
}
