package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink runs statements for each record. It implements processor.TxSink and is
// safe for concurrent use.
type Sink struct {
	statements []statement
	requireRow bool
	unaware    bool          // a statement has @payload, and none has @headers
	patience   time.Duration // of Check and Needs: askTimeout, unless a test sets another
	secrets    secret.Set
}

var _ processor.TxSink = (*Sink)(nil)

// New makes a sink. It finds faults in the form of the statements; Check asks the server about the rest.
func New(c Config) (*Sink, error) {
	statements, err := c.statements()
	if err != nil {
		return nil, fmt.Errorf("configure sql sink: %w", err)
	}
	return &Sink{statements: statements, requireRow: c.RequireRow, unaware: has(statements, "payload") && !has(statements, "headers"), patience: askTimeout, secrets: secret.New(c.Secrets...)}, nil
}

// DeliverTx runs the statements in order, in one network flush. After an error the transaction is of no more use.
func (s *Sink) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	if err := s.unfit(d); err != nil {
		return err
	}
	// Among the calls of pgx, only this one sends several statements with parameters at once without first asking the
	// server for their types.
	var batch pgconn.Batch
	s.queue(&batch, d)
	if applied, err := s.run(ctx, tx.Conn().PgConn(), &batch); err != nil {
		return s.failure(applied, d, err)
	}
	return nil
}

// unfit returns why the statements would take a payload that is not whole for one that is; nil if they would not.
// Statements that have @headers see it in them.
func (s *Sink) unfit(d processor.Delivery) error {
	err := packed.Fault(d.Headers)
	if err == nil || !s.unaware {
		return nil
	}
	return processor.Refused(fmt.Errorf("apply record %q: %w; statements that use @headers get it as it is", visible.Cut(d.ID), err))
}

// fit returns the records from the first on that the statements can take, or why they cannot take the first.
func (s *Sink) fit(ds []processor.Delivery) ([]processor.Delivery, error) {
	for i, d := range ds {
		if err := s.unfit(d); i == 0 && err != nil {
			return nil, err
		} else if err != nil {
			return ds[:i], nil
		}
	}
	return ds, nil
}

// errNoRow: a statement touched no row, though Config.RequireRow asks for one.
var errNoRow = errors.New("it touched no row")

// run sends a batch, in one network flush. It returns how many statements succeeded: those before the first that
// failed, or that touched no row.
func (s *Sink) run(ctx context.Context, conn *pgconn.PgConn, batch *pgconn.Batch) (applied int, err error) {
	noRow := false
	err = send(ctx, conn, batch, func(tag pgconn.CommandTag) {
		noRow = noRow || s.requireRow && touchedNone(tag)
		if !noRow {
			applied++
		}
	})
	if noRow {
		return applied, errNoRow
	}
	return applied, err
}

// send sends a batch, in one network flush, and drops the rows. It calls succeeded with the tag of each statement, up
// to the first that failed: the server runs none after that.
func send(ctx context.Context, conn *pgconn.PgConn, batch *pgconn.Batch, succeeded func(pgconn.CommandTag)) error {
	results := conn.ExecBatch(ctx, batch)
	for results.NextResult() {
		if tag, err := results.ResultReader().Close(); err == nil {
			succeeded(tag)
		}
	}
	return results.Close()
}

// touchedNone reports a command for which the server counts rows, and counted none.
func touchedNone(tag pgconn.CommandTag) bool { return strings.HasSuffix(tag.String(), " 0") }

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
