package cursor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// statement is one SQL command with its parameters as text. The server infers the parameters' types, and
// nothing is prepared. The only session state left is the version of a row: see noteVersion. So any pooler may
// be between.
type statement struct {
	sql  string
	args []string
	last []byte // one more argument, in the binary form; nil if there is none
}

// null is the argument NULL: no text of PostgreSQL contains this character.
const null = "\x00"

var (
	begin     = statement{sql: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"}
	beginRead = statement{sql: "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"}
	commit    = statement{sql: "COMMIT"}
	rollback  = statement{sql: "ROLLBACK"}
	pin       = statement{sql: pinSQL}
)

// path is the search_path of our statements. Otherwise a role that may create an operator or a function in a
// schema that is searched first could run code with the rights of a worker. Statements that run before it is
// set, or under another search_path, name the schema of each operator and function.
const path = "pg_catalog, pg_temp"

// pinSQL sets the search_path until the transaction ends.
const pinSQL = `/* cursor.pin */ SELECT pg_catalog.set_config('search_path', '` + path + `', true)`

// once runs statements on a connection of the pool, in one transaction and one network flush, and returns their
// results.
func (s *Store) once(ctx context.Context, timeout time.Duration, begin statement, statements ...statement) ([]*pgconn.Result, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer giveBack(conn)
	all := append(append([]statement{begin, pin}, statements...), commit)
	results, err := flushWithin(ctx, timeout, conn.Conn(), all...)
	if err == nil && !committed(results, len(all)-1) {
		err = errNotAsLocked
	}
	if err != nil {
		return nil, err
	}
	return results[2 : len(all)-1], nil
}

// onConnection runs f on a connection of the pool, and then ends a transaction that f left open.
func (s *Store) onConnection(ctx context.Context, f func(*pgxpool.Conn) error) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer giveBack(conn)
	return f(conn)
}

// connect takes a connection of the pool, or opens one.
func (s *Store) connect(ctx context.Context) (*pgxpool.Conn, error) {
	return answer.Conn(ctx, s.pool, s.config.answerTimeout())
}

// flush sends the statements in one network flush, in order, and returns a result for each. The server runs no
// statement after the first one that fails.
func flush(ctx context.Context, conn *pgx.Conn, statements ...statement) ([]*pgconn.Result, error) {
	return flushWithin(ctx, commitTimeout, conn, statements...)
}

func flushWithin(ctx context.Context, timeout time.Duration, conn *pgx.Conn, statements ...statement) ([]*pgconn.Result, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all := make([]prepared.Statement, len(statements))
	for i, s := range statements {
		values := make([][]byte, len(s.args))
		for i, arg := range s.args {
			if arg != null {
				values[i] = []byte(arg)
			}
		}
		all[i] = prepared.Statement{SQL: s.sql, Args: values}
		if s.last != nil {
			all[i].Args = append(values, s.last)
			all[i].ArgFormats = make([]int16, len(all[i].Args))
			all[i].ArgFormats[len(values)] = pgx.BinaryFormatCode
		}
	}
	var results []*pgconn.Result
	err := answer.Heard(within, conn, func(ctx context.Context) (err error) {
		results, err = prepared.Exec(ctx, conn, all...).ReadAll()
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "0A000" && statements[min(len(results), len(statements)-1)].sql == begin.sql {
		err = fmt.Errorf("%w: %w", errStandby, err)
	}
	return results, answer.Overdue(ctx, within, answer.FromDatabase, timeout, err)
}
