package table

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Lag is what stands behind a position, delivered or not.
type Lag struct {
	// Records behind the position, counted up to MaxLagRecords.
	Records int64
	// Age of the oldest of them, by the database's clock; zero without records
	// or without a created_at column.
	Age time.Duration
}

// Writer is a transaction that the fence waits for.
type Writer struct {
	// PID of its session; 0 for a prepared transaction.
	PID int
	// GID of a prepared transaction, else "".
	GID string
	// Application is the session's application_name, User its role.
	Application, User string
	// Since is when the transaction began, or was prepared; zero when the role
	// may not see it.
	Since time.Time
}

// Lag counts what stands behind a position.
func (s *Source) Lag(ctx context.Context, after cursor.Position) (Lag, error) { return Lag{}, errStub }

// Writers returns the transactions that the fence waits for at this moment,
// oldest first, at most 100.
func (s *Source) Writers(ctx context.Context) ([]Writer, error) { return nil, errStub }
