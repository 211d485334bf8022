package daemon

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

func newSQL(statement string) (*sql.Sink, error) {
	return sql.New(sql.Config{Statement: statement})
}

// checkSQL finds what is wrong with a statement without a database.
func checkSQL(statement string) error {
	_, err := newSQL(statement)
	return err
}

// sink checks a sink's statements against the database.
func (d *doctor) sink(ctx context.Context, p Process) error {
	if p.Sink.Kind != SinkSQL {
		return nil
	}
	sink, err := newSQL(p.Sink.SQL)
	if err != nil {
		return err
	}
	return d.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return sink.Check(ctx, conn.Conn()) })
}
