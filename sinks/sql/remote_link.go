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

// connect returns a connection of its own to the target. The connection ends at an answer with more than maxRows
// bytes of rows; 0: at an answer with any row.
func (r *Remote) connect(ctx context.Context, maxRows int) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	address := r.address.Copy()
	pgwall.Bound(&address.Config, maxRows)
	return pgx.ConnectConfig(ctx, address)
}

// endTimeout bounds the work for a connection after its call has ended.
const endTimeout = 2 * time.Second

// end leaves the connection without a transaction, or closes it.
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

// errAnswer: the target answered with rows that were not asked for. The driver would keep any number of rows, and a
// row may have any columns.
var errAnswer = errors.New("the target answered with other rows than it was asked for: is it PostgreSQL?")

// ask sends a batch, in one network flush, and returns the row of its last statement, or nil. Each statement has at
// most one row, and a row of the last has that many columns. After errAnswer the connection is of no use.
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

// commit sends a batch that ends with COMMIT, in one network flush. It returns how many statements succeeded: the
// server runs none after the first that failed. Rows are dropped, and only the last tag is kept.
func (r *Remote) commit(ctx context.Context, batch *pgconn.Batch) (done int, err error) {
	batch.ExecParams("COMMIT", nil, nil, nil, nil)
	var last pgconn.CommandTag
	err = send(ctx, r.conn.PgConn(), batch, func(tag pgconn.CommandTag) {
		last = tag
		done++
	})
	if err != nil {
		return done, err
	}
	if last.String() != "COMMIT" {
		return done, &tagError{last}
	}
	return done, nil
}

// tagError is a COMMIT that the server did not perform.
type tagError struct{ tag pgconn.CommandTag }

func (e *tagError) Error() string { return "it answered COMMIT with " + e.tag.String() }

// isServers reports whether the server itself gave the reason, and still answers.
func isServers(err error) bool { return codeOf(err) != "" && !isGone(codeOf(err)) }

// isGone reports that the server has ended the session (57P01 and so on, 25P03), or can no longer be written to
// (25006). Another connection may find a server that can.
func isGone(sqlState string) bool {
	return class(sqlState) == "08" || class(sqlState) == "57" && sqlState != "57014" || sqlState == "25P03" || sqlState == "25006"
}
