package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Operator decides about the cursors of one schema. It is safe for use by several goroutines.
type Operator struct {
	store  *cursor.Store
	config cursor.Config
	db     *tables.DB
}

// New returns the operator of the cursors of a store. It uses the connections of the store's pool.
func New(store *cursor.Store) *Operator {
	config := store.Config()
	return &Operator{store: store, config: config, db: tables.New(store.Pool(), config.Schema, config.Timeout)}
}

// Errors of decisions, besides those of package cursor. After any of them the row is as it was.
var (
	// ErrNotFailing reports that there is no failing record to try again or to pass over.
	ErrNotFailing = errors.New("no record is failing")
	// ErrOldPrimary reports that the process halted on a server that may be an old primary, and the decision is
	// not Fenced.
	ErrOldPrimary = errors.New("this server may be an old primary, where nothing must be decided")
)

// ask runs statements that only read. If the database does not answer because a transaction keeps readers from
// a table of these statements, the error names that transaction.
func (o *Operator) ask(ctx context.Context, statements ...tables.Statement) ([]*pgconn.Result, error) {
	results, err := o.db.Once(ctx, o.db.Timeout, tables.BeginRead, statements...)
	return results, o.store.NameExcluder(ctx, err, o.db.Named(statements)...)
}

// text is an epoch as an argument.
func text(e cursor.Epoch) string { return strconv.FormatInt(int64(e), 10) }

func exists(process string) error { return fmt.Errorf("%w: %q", cursor.ErrExists, process) }
