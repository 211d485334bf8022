package cursor

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// Lease is the right to deliver the records of one process and to advance its cursor, while it is held. It is
// over after Release, Fail, Halt, or any error of its methods. Only one goroutine at a time may call its
// methods; Context may be used by all.
type Lease struct {
	store     *Store
	terms     terms
	server    string
	place     string // see start
	histories histories

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when keep has returned

	mu   sync.Mutex // guards the connection and what follows
	conn *pgxpool.Conn
	tx   pgx.Tx // made when first needed
	row  Row
	at   version // of the row, at the time it was locked

	waitersChecked time.Time    // when it was last checked whether a session waits for the row
	planned        time.Time    // when the statements were last planned for the size of the table
	began          time.Time    // when the worker asked for the lock, with a monotonic reading
	answered       atomic.Int64 // since began: when the last answered statement was sent
	handed         atomic.Int64 // since began: when Held last allowed a record to be sent
}

// newLease keeps the lease of a row; asked is when its lock was asked for.
func newLease(ctx context.Context, s *Store, conn *pgxpool.Conn, row lockedRow, t terms, asked time.Time) *Lease {
	l := &Lease{store: s, terms: t, server: row.server.run, place: row.server.place(), histories: row.histories, conn: conn, row: row.Row, at: row.at, began: asked, waitersChecked: time.Now(), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go l.keep()
	return l
}

// Context ends when the lease does; if the lease was lost, ErrLeaseLost is among its causes. Sink calls run
// under it.
func (l *Lease) Context() context.Context { return l.ctx }

// Process returns the name of the process.
func (l *Lease) Process() string { return l.row.Process }

// Position returns how far the cursor has durably come.
func (l *Lease) Position() Position { return l.row.Position }

// Sequence returns how many records the process has durably delivered.
func (l *Lease) Sequence() int64 { return l.row.Sequence }

// Epoch returns the fencing token of this lease.
func (l *Lease) Epoch() Epoch { return l.row.Epoch }

// Origin returns the identity of the cursor: see Row.
func (l *Lease) Origin() string { return l.row.Origin }

// History returns the mark of the history that a position belongs to: see Histories.
func (l *Lease) History(at Position) string { return l.histories.at(at) }

// Server returns the run of the server that the lease is held on, as Seen.Server does.
func (l *Lease) Server() string { return l.server }

// Failure returns the record the process was stuck on when the lease was
// acquired or last advanced; nil if there is none.
func (l *Lease) Failure() *Failure { return l.row.Failure }

// Rollback undoes what was done through WithTx since the last Advance and goes on holding the lease. An error
// means that the lease is over.
func (l *Lease) Rollback(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.db.Explain("roll back", l.row.Process, err)
	}
	results, err := l.flush(ctx, tables.Rollback, tables.Begin, l.store.lock(l.row.Process, l.terms))
	if err == nil {
		err = l.asLeft(last(results))
	}
	if err != nil {
		return l.store.db.Explain("roll back", l.row.Process, l.lose(err))
	}
	return nil
}

// WithTx calls f with the transaction that the next Advance commits. The lease must come from AcquireTx. tx
// refuses to commit and to roll back; tx.Begin makes a savepoint. Only f may use the connection while it runs.
// If the server falls silent meanwhile, Context ends.
func (l *Lease) WithTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.db.Explain("deliver under", l.row.Process, err)
	}
	if l.terms.application != ApplicationTx {
		return l.store.db.Explain("deliver under", l.row.Process, errors.New("the lease was not acquired with AcquireTx"))
	}
	listening, cancel := context.WithCancel(l.ctx)
	defer cancel()
	defer answer.Listen(listening, l.conn.Conn(), func(err error) { _ = l.lose(err) }).Stop()
	if l.tx == nil {
		tx, err := tables.Adopt(ctx, l.conn.Conn(), ErrTx)
		if err != nil {
			return l.store.db.Explain("deliver under", l.row.Process, l.lose(err))
		}
		l.tx = tx
	}
	err := f(l.tx)
	if l.conn.Conn().IsClosed() {
		return l.lose(err)
	}
	return err
}

// Release gives the lease back and undoes everything since the last Advance. It may be called at any time, and
// again.
func (l *Lease) Release() {
	l.end(errors.New("lease released"))
}

// end stops the pings, then gives the connection back.
func (l *Lease) end(cause error) {
	l.cancel(cause)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		tables.GiveBack(l.conn)
		l.conn = nil
	}
}

func (l *Lease) epoch() string { return strconv.FormatInt(int64(l.row.Epoch), 10) }

// flush sends statements; the caller holds mu.
func (l *Lease) flush(ctx context.Context, statements ...tables.Statement) ([]*pgconn.Result, error) {
	sent := time.Since(l.began)
	results, err := tables.Flush(ctx, l.conn.Conn(), statements...)
	if err == nil {
		l.answered.Store(int64(sent))
	}
	return results, err
}
