package sql

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgwall"
)

// open connects if there is no connection.
func (r *Remote) open(ctx context.Context) error {
	if r.conn != nil && !r.conn.IsClosed() {
		return nil
	}
	conn, err := r.connect(ctx, 0) // ask and commit keep no rows
	r.conn = conn
	return err
}

// connect returns a connection of its own to the target, which ends at an answer with
// more bytes of rows; 0: with any.
func (r *Remote) connect(ctx context.Context, maxRows int) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	address := r.address.Copy()
	pgwall.Bound(&address.Config, maxRows)
	return pgx.ConnectConfig(ctx, address)
}

// endTimeout bounds what is done for a connection after its call has ended.
const endTimeout = 2 * time.Second

// end leaves the connection in no transaction, or closes it.
func (r *Remote) end() {
	if r.conn == nil || !r.conn.IsClosed() && r.conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if r.conn.IsClosed() || r.rollback(ctx) != nil {
		r.drop()
	}
}

func (r *Remote) rollback(ctx context.Context) error {
	_, err := r.conn.PgConn().ExecParams(ctx, "ROLLBACK", nil, nil, nil, nil).Close()
	return err
}

// drop closes the connection.
func (r *Remote) drop() {
	if r.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = r.conn.Close(ctx) // its transaction, if any, is rolled back
	r.conn = nil
}

// errAnswer: the driver would keep any number of rows, and a row may have any columns.
var errAnswer = errors.New("the target answered with other rows than it was asked for: is it PostgreSQL?")

// ask sends a batch, in one network flush, and returns the row of its last statement, or
// nil. Each statement has at most one row, and a row of the last has that many columns.
// The connection is of no use after errAnswer.
func (r *Remote) ask(ctx context.Context, batch *pgconn.Batch, columns int) (row [][]byte, err error) {
	results := r.conn.PgConn().ExecBatch(ctx, batch)
	for results.NextResult() {
		row = nil
		for result := results.ResultReader(); result.NextRow(); {
			if row != nil {
				return nil, errAnswer
			}
			for _, value := range result.Values() {
				row = append(row, slices.Clone(value))
			}
		}
	}
	if err := results.Close(); err != nil {
		return nil, err
	}
	if row != nil && len(row) != columns {
		return nil, errAnswer
	}
	return row, nil
}

// commit sends a batch, in one network flush, that ends with COMMIT. It returns how
// many statements succeeded: after the first that failed the server runs none. Rows are
// dropped, and only the last tag is kept.
func (r *Remote) commit(ctx context.Context, batch *pgconn.Batch) (done int, err error) {
	batch.ExecParams("COMMIT", nil, nil, nil, nil)
	var last pgconn.CommandTag
	results := r.conn.PgConn().ExecBatch(ctx, batch)
	for results.NextResult() {
		if tag, err := results.ResultReader().Close(); err == nil {
			last = tag
			done++
		}
	}
	if err := results.Close(); err != nil {
		return done, err
	}
	if last.String() != "COMMIT" {
		return done, &tagError{last}
	}
	return done, nil
}

// tagError is a COMMIT that the server did not do.
type tagError struct{ tag pgconn.CommandTag }

func (e *tagError) Error() string { return "it answered COMMIT with " + e.tag.String() }

// isServers reports whether the server itself said why, and still talks.
func isServers(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && !isGone(pgErr.Code)
}

// isGone: the server has ended the session (57P01 and so on, 25P03), or cannot be
// written to any more (25006): another connection may find one that can.
func isGone(sqlState string) bool {
	return class(sqlState) == "08" || class(sqlState) == "57" && sqlState != "57014" || sqlState == "25P03" || sqlState == "25006"
}
