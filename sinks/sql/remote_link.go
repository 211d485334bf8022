package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// open connects if there is no connection.
func (r *Remote) open(ctx context.Context) error {
	if r.conn != nil && !r.conn.IsClosed() {
		return nil
	}
	conn, err := r.connect(ctx)
	r.conn = conn
	return err
}

// connect returns a connection of its own to the target.
func (r *Remote) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, r.address.Copy())
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
	if r.conn.IsClosed() || r.conn.PgConn().ExecParams(ctx, "ROLLBACK", nil, nil, nil, nil).Read().Err != nil {
		r.drop()
	}
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

// commit sends a batch, in one network flush, that ends with COMMIT. It returns the
// tags of the statements that succeeded: after the first that failed the server
// runs none.
func (r *Remote) commit(ctx context.Context, batch *pgconn.Batch) (tags []pgconn.CommandTag, err error) {
	batch.ExecParams("COMMIT", nil, nil, nil, nil)
	results := r.conn.PgConn().ExecBatch(ctx, batch)
	for results.NextResult() {
		if tag, err := results.ResultReader().Close(); err == nil {
			tags = append(tags, tag)
		}
	}
	if err := results.Close(); err != nil {
		return tags, err
	}
	if last := len(tags) - 1; tags[last].String() != "COMMIT" || tags[last-1].RowsAffected() != 1 {
		return tags, fmt.Errorf("the locked row changed under its lock (%s, %s)", tags[last-1], tags[last])
	}
	return tags, nil
}

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
