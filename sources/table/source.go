package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

var errStub = errors.New("stub")

// Source reads the records of one table. It is for one reader at a time.
type Source struct {
	pool   *pgxpool.Pool
	config Config
}

// New returns the source that config describes. It touches no database yet.
func New(pool *pgxpool.Pool, config Config) (*Source, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return &Source{pool: pool, config: config}, nil
}

// Read returns records after a position (processor.Source).
func (s *Source) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	return processor.Page{}, errStub
}

// Inspect finds what breaks or weakens a promise, worst first.
func (s *Source) Inspect(ctx context.Context) ([]Finding, error) { return nil, errStub }

// End returns the position behind everything stamped so far (processor.Ender).
func (s *Source) End(ctx context.Context) (cursor.Position, error) { return "", errStub }
