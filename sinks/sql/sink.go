package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink runs statements for each record. It implements processor.TxSink and is
// safe for concurrent use.
type Sink struct {
	source     string
	statements []statement
	patience   time.Duration // of Check and Needs: askTimeout, unless a test says otherwise
	secrets    secret.Set
}

var _ processor.TxSink = (*Sink)(nil)

// New makes a sink. It finds what is wrong with the statements' form; Check
// asks the server about the rest.
func New(c Config) (*Sink, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure sql sink: %w", err)
	}
	statements, err := parse(c.Statement)
	if err != nil {
		return nil, err
	}
	return &Sink{source: c.Statement, statements: statements, patience: askTimeout, secrets: secret.New(c.Secrets...)}, nil
}

// DeliverTx runs the statements in order, in one network flush. After an error
// the transaction is of no more use.
func (s *Sink) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	// Of all calls of pgx only this one sends several statements with parameters at
	// once without asking the server for their types first.
	var batch pgconn.Batch
	s.queue(&batch, d)
	results := tx.Conn().PgConn().ExecBatch(ctx, &batch)
	applied := 0
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err == nil {
			applied++
		}
	}
	if err := results.Close(); err != nil {
		return s.failure(applied, d, err)
	}
	return nil
}

// queue adds the statements of a record to a batch.
func (s *Sink) queue(batch *pgconn.Batch, d processor.Delivery) {
	values := make(map[int][]byte, len(arguments))
	for _, statement := range s.statements {
		params := make([][]byte, len(statement.params))
		for i, a := range statement.params {
			value, ok := values[a]
			if !ok {
				value = arguments[a].value(d)
				values[a] = value
			}
			params[i] = value
		}
		batch.ExecParams(statement.sql, params, nil, nil, nil) // no types: the server infers them
	}
}
