package prove

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/draft"
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

// open makes the source, and refuses a table that it cannot read in order. Without an order, it takes the first that the
// table allows of (created_at, id), id, and what init would propose.
func open(ctx context.Context, pool *pgxpool.Pool, c table.Config) (*opened, error) {
	if c.Order != "" {
		return openAs(ctx, pool, c)
	}
	c.Order = table.CreatedAt
	first, err := openAs(ctx, pool, c)
	var refused *refusal
	if err == nil || !errors.As(err, &refused) {
		return first, err
	}
	c.Order = table.ID
	second, otherErr := openAs(ctx, pool, c)
	if otherErr == nil {
		return second, nil
	}
	if third, err := openProposed(ctx, pool, c); err == nil {
		return third, nil
	}
	var alone *refusal
	if !errors.As(otherErr, &alone) {
		return nil, otherErr
	}
	return nil, fmt.Errorf("%w\nordered by the id alone: %s", refused, alone.problems())
}

// openProposed takes the order that init would propose, where the table needs nothing for it.
func openProposed(ctx context.Context, pool *pgxpool.Pool, c table.Config) (*opened, error) {
	found, err := draft.Look(ctx, pool, c.Table)
	if err != nil {
		return nil, err
	}
	p := draft.Propose(found)
	c.Order, c.Columns.ID = p.Order, p.Columns.ID
	if c.Columns.CreatedAt == "" {
		c.Columns.CreatedAt = p.Columns.CreatedAt
	}
	return openAs(ctx, pool, c)
}

// ErrRefused means that the table cannot be read in order as it is.
var ErrRefused = errors.New("the table cannot be read in order")

// refusal is an ErrRefused with its reasons.
type refusal struct {
	order    string
	findings []table.Finding
}

func (r *refusal) Error() string {
	var reasons []string
	for _, f := range r.findings {
		reasons = append(reasons, f.String())
	}
	return fmt.Sprintf("%s by %s: %s", ErrRefused, r.order, strings.Join(reasons, "; "))
}

func (r *refusal) Unwrap() error { return ErrRefused }

// problems are the reasons without what to do, which is another order.
func (r *refusal) problems() string {
	var problems []string
	for _, f := range r.findings {
		problems = append(problems, f.Problem)
	}
	return strings.Join(problems, "; ")
}

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
	var refused []table.Finding
	for _, f := range findings {
		if f.Severity == table.Refuse {
			refused = append(refused, f)
		}
		o.findings = append(o.findings, f.String())
	}
	if len(refused) > 0 {
		return nil, &refusal{order: o.order, findings: refused}
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
