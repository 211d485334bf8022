package cursor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// statement is one SQL command with its parameters as text. The server infers
// the parameters' types, and nothing is prepared: no session state is left
// behind, whatever pooler stands between.
type statement struct {
	sql  string
	args []string
}

// null is the argument NULL: no text of PostgreSQL holds the character.
const null = "\x00"

var (
	begin    = statement{sql: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"}
	commit   = statement{sql: "COMMIT"}
	rollback = statement{sql: "ROLLBACK"}
)

// flush sends the statements in one network flush, in order, and returns a
// result for each. The server runs none behind the first that fails.
func flush(ctx context.Context, conn *pgx.Conn, statements ...statement) ([]*pgconn.Result, error) {
	return flushWithin(ctx, flushTimeout, conn, statements...)
}

func flushWithin(ctx context.Context, timeout time.Duration, conn *pgx.Conn, statements ...statement) ([]*pgconn.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
	}
	return prepared.Exec(ctx, conn, all...).ReadAll()
}
