package tables

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// CommitTimeout bounds one exchange with the server that commits. A COMMIT may wait for a synchronous standby,
// and giving up on it leaves its outcome unknown.
const CommitTimeout = 30 * time.Second

// Flush sends the statements in one network flush, in order, and returns a result for each. The server runs no
// statement after the first one that fails.
func Flush(ctx context.Context, conn *pgx.Conn, statements ...Statement) ([]*pgconn.Result, error) {
	return FlushWithin(ctx, CommitTimeout, conn, statements...)
}

// FlushWithin is Flush with another deadline than CommitTimeout.
func FlushWithin(ctx context.Context, timeout time.Duration, conn *pgx.Conn, statements ...Statement) ([]*pgconn.Result, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all := make([]prepared.Statement, len(statements))
	for i, s := range statements {
		values := make([][]byte, len(s.Args))
		for i, arg := range s.Args {
			if arg != Null {
				values[i] = []byte(arg)
			}
		}
		all[i] = prepared.Statement{SQL: s.SQL, Args: values}
		if s.Last != nil {
			all[i].Args = append(values, s.Last)
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
	if errors.As(err, &pgErr) && pgErr.Code == "0A000" && statements[min(len(results), len(statements)-1)].SQL == Begin.SQL {
		err = fmt.Errorf("%w: %w", errStandby, err)
	}
	return results, answer.Overdue(ctx, within, answer.FromDatabase, timeout, err)
}
