package prepared

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Statement is one SQL command.
type Statement struct {
	SQL        string
	Args       [][]byte
	ArgFormats []int16 // of the arguments; nil: text
	Formats    []int16 // of the result's columns; nil: text
}

// most bounds the statements of one session: each costs the server memory for as long as the session lasts. Further
// statements are parsed each time.
const most = 500

const dataKey = "ordered-dispatcher"

// known is the state that the package keeps for a connection.
type known struct {
	own        bool
	statements map[string]*pgconn.StatementDescription
}

// Ready prepares the statements that are not prepared yet. It does so in a transaction that begins with the given
// statements and is rolled back: names are looked up in the search_path of that moment. If the session is not our
// own, it does nothing. conn must not be in a transaction.
func Ready(ctx context.Context, conn *pgx.Conn, begin []string, statements ...string) error {
	k, err := knownOf(ctx, conn)
	if err != nil || !k.own {
		return err
	}
	began := false
	for _, sql := range statements {
		if k.statements[sql] != nil || len(k.statements) >= most {
			continue
		}
		if !began {
			if err := run(ctx, conn, begin...); err != nil {
				return err
			}
			began = true
		}
		sd, err := conn.PgConn().Prepare(ctx, "ordered_dispatcher_"+strconv.Itoa(len(k.statements)), sql, nil)
		if err != nil {
			return errors.Join(err, rollBack(ctx, conn))
		}
		k.statements[sql] = sd
	}
	if began {
		return rollBack(ctx, conn)
	}
	return nil
}

// Again prepares those of the statements anew that are prepared, so that the server plans them for the tables as they
// are now. conn may be in a transaction.
func Again(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	k, _ := conn.PgConn().CustomData()[dataKey].(*known)
	for _, sql := range statements {
		if k == nil || k.statements[sql] == nil {
			continue
		}
		name := k.statements[sql].Name
		if err := conn.PgConn().Deallocate(ctx, name); err != nil {
			return err
		}
		sd, err := conn.PgConn().Prepare(ctx, name, sql, nil)
		if err != nil {
			return err
		}
		k.statements[sql] = sd
	}
	return nil
}

// rollBack ends the transaction of conn. If there is none, it sends no ROLLBACK, which would leave a warning in the
// server's log.
func rollBack(ctx context.Context, conn *pgx.Conn) error {
	if conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	return run(ctx, conn, "ROLLBACK")
}

func run(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, sql := range statements {
		if result := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read(); result.Err != nil {
			return result.Err
		}
	}
	return nil
}

// ownSQL distinguishes our own session from a pooler's: see the package comment.
const ownSQL = `/* prepared.own */ SELECT pg_catalog.pg_backend_pid()`

func knownOf(ctx context.Context, conn *pgx.Conn) (*known, error) {
	data := conn.PgConn().CustomData()
	if k, ok := data[dataKey].(*known); ok {
		return k, nil
	}
	result := conn.PgConn().ExecParams(ctx, ownSQL, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	k := &known{
		own:        string(result.Rows[0][0]) == strconv.FormatUint(uint64(conn.PgConn().PID()), 10),
		statements: map[string]*pgconn.StatementDescription{},
	}
	data[dataKey] = k
	return k, nil
}

// Exec sends the statements in order, and one Sync after them. After the first that fails, the server runs none.
func Exec(ctx context.Context, conn *pgx.Conn, statements ...Statement) *Results {
	k, _ := conn.PgConn().CustomData()[dataKey].(*known)
	var batch pgconn.Batch
	for _, s := range statements {
		if k != nil && k.statements[s.SQL] != nil {
			batch.ExecStatement(k.statements[s.SQL], s.Args, s.ArgFormats, s.Formats)
		} else {
			batch.ExecParams(s.SQL, s.Args, nil, s.ArgFormats, s.Formats)
		}
	}
	return &Results{MultiResultReader: conn.PgConn().ExecBatch(ctx, &batch), conn: conn}
}

// Results are the results of Exec, one for each statement in order. The caller closes them.
type Results struct {
	*pgconn.MultiResultReader
	conn *pgx.Conn
}

// Close returns the first error.
func (r *Results) Close() error { return r.stale(r.MultiResultReader.Close()) }

// ReadAll reads all remaining results.
func (r *Results) ReadAll() ([]*pgconn.Result, error) {
	results, err := r.MultiResultReader.ReadAll()
	return results, r.stale(err)
}

// ErrStale means that the prepared statements of a session are no longer valid. The session is closed; another one
// prepares anew.
var ErrStale = errors.New("the prepared statements of this session are no longer valid")

const closeTimeout = time.Second

// stale closes a connection whose prepared statements are gone (DISCARD ALL) or of another shape (ALTER TABLE). That
// error does not judge the statement, so it is not passed on as the server's.
func (r *Results) stale(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "26000" && !(pgErr.Code == "0A000" && pgErr.Routine == "RevalidateCachedQuery") {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = r.conn.Close(ctx)
	return fmt.Errorf("%w: %v", ErrStale, err)
}
