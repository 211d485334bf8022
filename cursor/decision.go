package cursor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Errors of decisions, besides ErrUnknown and ErrHalted. After any of them except ErrUncertain the row is as it
// was.
var (
	// ErrMoved reports that the cursor, or the dead letter, is not at the position of Decision.Expect.
	ErrMoved = errors.New("not at the expected position")
	// ErrLocked reports that the row could not be locked within Decision.Timeout.
	ErrLocked = errors.New("the cursor's row is locked")
	// ErrNoEvent reports that the audit would not have kept the decision.
	ErrNoEvent = tables.ErrNoEvent
	// ErrUncertain reports that the database did not answer the commit, or not in time. The history shows
	// whether it was done: then it has an event of it.
	ErrUncertain = tables.ErrUncertain
)

// Decision is what an operator orders and answers for. It goes into the audit with what was done. Each method
// that takes a Decision locks the row, as a worker does for its deliveries. So it acts between two checkpoints
// and never during a delivery. A busy worker stands aside within some 100 ms, or when the call it is in ends.
// The change and its event are one transaction.
//
// A paused process stays paused until it is resumed, even if an operator decides something else about it.
type Decision struct {
	// Actor is the person or program that decides. Required.
	Actor string
	// Reason is why. Decisions that can lose records require it.
	Reason string
	// Expect is the position that the operator saw: the cursor's or, for Skip and Retry, the failing record's.
	// If the locked row has another one, nothing is done (ErrMoved). nil: any. For a dead letter it is the
	// position of its record.
	Expect *Position
	// Timeout is how long to wait for the row before ErrLocked, so that a sink call in flight may end. The row of a
	// dead letter is locked while it is replayed.
	Timeout time.Duration `knob:"-timeout" default:"30s" min:"1ms" max:"1h"`
	// Fenced asserts that the server is the only primary: a later one is fenced, or gone. A decision about a
	// process that halted on a possible old primary (ClassOldPrimary) needs it. A later primary would go on
	// below the numbers that the decision begins.
	Fenced bool
	// Table is the table of the process's source, with its schema, as table.Source.Name returns it. Seek and Prepare then
	// refuse a place whose records retention has removed (operator.PrunedError). "": it is not checked.
	Table string
	// Order is the order of the source, as table.Source.Ordering returns it. If a removal was noted in other orders alone,
	// it is not known whether a step back meets removed records. Then it is refused, too. "" is an order of no removal.
	Order string
	// Whole asserts that the source takes every row of its table, so it has no `where`. Then rows that retention has only
	// marked are not missing.
	Whole bool
	// Pruned allows them to go to such a place all the same.
	Pruned bool
	// DryRun reads the row without a lock, checks the rest, and changes nothing.
	DryRun bool
}

// Checked returns the decision with its defaults filled in, and all that is wrong with it.
func (d Decision) Checked() (Decision, error) {
	d = d.withDefaults()
	return d, errors.Join(d.faults()...)
}

// Reasoned is Checked for a decision that needs a reason, unless it is a dry run.
func (d Decision) Reasoned() (Decision, error) {
	d = d.withDefaults()
	faults := d.faults()
	if d.Reason == "" && !d.DryRun {
		faults = append(faults, errors.New("the decision has no reason, which the audit needs"))
	}
	return d, errors.Join(faults...)
}

func (d Decision) withDefaults() Decision {
	d.Actor, d.Reason = strings.TrimSpace(clean(d.Actor)), strings.TrimSpace(clean(d.Reason))
	knob.Fill(&d)
	return d
}

func (d Decision) faults() (all []error) {
	if d.Actor == "" {
		all = append(all, errors.New("the decision has no actor"))
	}
	return append(all, knob.Check(d))
}

// ApplicationOperator is the application name of an operator's transaction, which only writes the cursor and
// its audit.
const ApplicationOperator = "ordered-dispatcher operator "

// operateSQL locks the row by its primary key and waits for it, so that a worker sees the waiting session and
// stands aside. The settings end with the transaction.
const operateSQL = `/* cursor.operate */
SELECT` + rowColumns + `,
	` + unnotedSQL + `
FROM {schema}.cursor
WHERE process_name = $1
FOR UPDATE`

// LockForOperator waits for the row of a process, at most for timeout, and calls f in the transaction that then
// holds its lock. A worker stands aside for it. The search_path is pg_catalog meanwhile. f commits: what it has
// not committed when it returns is rolled back. The errors are ErrUnknown, ErrLocked, which names the
// transaction that has the row, and those of f.
func (s *Store) LockForOperator(ctx context.Context, process string, timeout time.Duration, f func(*pgx.Conn, Row) error) error {
	err := s.db.OnConnection(ctx, func(conn *pgxpool.Conn) error {
		row, err := s.lockWaiting(ctx, conn.Conn(), process, timeout)
		if ctx.Err() != nil {
			return fmt.Errorf("gave up waiting for the row, and changed nothing: %w", ctx.Err())
		}
		if err != nil {
			return err
		}
		return f(conn.Conn(), row)
	})
	if errors.Is(err, ErrLocked) {
		return s.nameLockers(ctx, process, err)
	}
	return err
}

// lockWaiting leaves conn in a transaction that holds the lock of a row.
func (s *Store) lockWaiting(ctx context.Context, conn *pgx.Conn, process string, timeout time.Duration) (Row, error) {
	results, err := tables.FlushWithin(ctx, timeout+tables.Margin, conn, tables.Begin, tables.Pin,
		tables.Wait(ApplicationOperator+process, timeout, s.config.Timeout), s.db.Statement(operateSQL, process))
	if tables.GaveUp(err) {
		return Row{}, fmt.Errorf("%w, and was not free within %v", ErrLocked, timeout)
	}
	if err != nil {
		return Row{}, err
	}
	return operatedRow(results[len(results)-1])
}

// LookBeside reads the row of a further process in the transaction of LockForOperator, as it is committed now. It waits
// for no worker.
func (s *Store) LookBeside(ctx context.Context, conn *pgx.Conn, process string) (Row, error) {
	results, err := tables.Flush(ctx, conn, tables.Statement{SQL: s.lookSQL, Args: []string{process}})
	if err != nil {
		return Row{}, err
	}
	if len(results[0].Rows) == 0 {
		return Row{}, ErrUnknown
	}
	return parseRow(results[0].Rows[0])
}

// operatedRow returns the row that operateSQL has read.
func operatedRow(result *pgconn.Result) (Row, error) {
	if len(result.Rows) == 0 {
		return Row{}, ErrUnknown
	}
	p := tables.Parser{Values: result.Rows[0]}
	row, err := parseRow(p.Values)
	row.unnoted = p.True(rowWidth)
	return row, err
}
