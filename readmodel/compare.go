package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// ErrApart reports that two versions were not at the same position at any moment within Comparison.Wait, or that one is
// halted or paused behind the other.
var ErrApart = errors.New("the two versions were never at the same record")

// Comparison looks for differences between the tables of two versions.
type Comparison struct {
	// Old and New are the processes of the two versions. They have the same source.
	Old, New string
	// SQL returns a row for each difference, and no row if there is none, for instance
	// (TABLE v1.balance EXCEPT TABLE v2.balance) UNION ALL (TABLE v2.balance EXCEPT TABLE v1.balance). The search_path is
	// pg_catalog: other names need their schema, and operators, too, as in a OPERATOR(public.=) b.
	SQL string
	// Hold is the table of the source, as in SQL, if writers to it are to wait until both versions have come to its end:
	// for a table into which so much is written that the two are never at the same record otherwise. They wait for HoldFor
	// at most.
	Hold string
	// Wait is for how long to wait for a moment when both versions have applied the same records.
	Wait time.Duration `knob:"wait" default:"30s" min:"1ms" max:"1h"`
	// Timeout bounds the query.
	Timeout time.Duration `knob:"timeout" default:"30m" min:"1ms" max:"24h"`
	// HoldFor bounds how long writers wait.
	HoldFor time.Duration `knob:"hold_for" default:"1s" min:"1ms" max:"1m"`
	// Limit is how many rows to return at most.
	Limit int `knob:"limit" default:"20" min:"1" max:"10000"`
}

// Difference is what a comparison found.
type Difference struct {
	// Position is where both versions were.
	Position cursor.Position
	// Columns are the names of the query's columns, and Rows its first rows, as text; "NULL" is written for a null.
	Columns []string
	Rows    [][]string
	// More reports that there are more than Comparison.Limit rows.
	More bool
}

// Compare runs a comparison. It changes nothing, and holds no lock while the query runs. store has the cursors of both
// versions.
func Compare(ctx context.Context, store *cursor.Store, c Comparison) (Difference, error) {
	knob.Fill(&c)
	if err := errors.Join(knob.Check(c), c.check()); err != nil {
		return Difference{}, fmt.Errorf("compare read models: %w", err)
	}
	d, err := c.compare(ctx, store)
	if err != nil {
		err = fmt.Errorf("compare read models %s and %s: %w", visible.Cut(c.Old), visible.Cut(c.New), err)
	}
	return d, err
}

func (c Comparison) check() error {
	switch {
	case c.Old == c.New:
		return fmt.Errorf("both versions are the process %q", c.Old)
	case strings.TrimSpace(c.SQL) == "":
		return errors.New("there is no query to compare with")
	}
	return nil
}

// compare takes a snapshot in which both versions are at the same position, and runs the query in it.
func (c Comparison) compare(ctx context.Context, store *cursor.Store) (Difference, error) {
	var snapshot pgx.Tx
	var at cursor.Position
	var err error
	if c.Hold == "" {
		snapshot, at, err = c.meet(ctx, store, c.Wait, together)
	} else {
		snapshot, at, err = c.meetAtTheEnd(ctx, store)
	}
	if err != nil {
		return Difference{}, err
	}
	defer rollback(ctx, snapshot)
	d, err := c.differences(ctx, snapshot)
	d.Position = at
	return d, err
}

// askTimeout bounds a statement that takes a few milliseconds on a server that is well.
const askTimeout = 10 * time.Second

// rollback ends a transaction that has changed nothing.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // if it fails, the connection is closed
}

// together reports that two versions have applied the same records.
func together(old, recent cursor.Position) bool { return old == recent }

// meetAtTheEnd is meet while no one writes to the table of the source. It begins when the new version has come to where
// the old one was. The server lets the writers go after HoldFor, even if this program has died.
func (c Comparison) meetAtTheEnd(ctx context.Context, store *cursor.Store) (pgx.Tx, cursor.Position, error) {
	first, err := look(ctx, store, c.Old)
	if err != nil {
		return nil, "", err
	}
	near, _, err := c.meet(ctx, store, c.Wait, func(_, recent cursor.Position) bool { return recent >= first.Position })
	if err != nil {
		return nil, "", err
	}
	rollback(ctx, near)
	held, err := c.held(ctx, store)
	if err != nil {
		return nil, "", fmt.Errorf("hold the writers to %s: %w", visible.Cut(c.Hold), err)
	}
	defer rollback(ctx, held)
	return c.meet(ctx, store, c.HoldFor, together)
}

func look(ctx context.Context, store *cursor.Store, process string) (cursor.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return store.Look(ctx, process)
}

// held returns a transaction that holds the writers.
func (c Comparison) held(ctx context.Context, store *cursor.Store) (pgx.Tx, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout+c.HoldFor)
	defer cancel()
	tx, err := store.Pool().Begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := hold(ctx, tx, c.Hold, c.HoldFor); err != nil {
		rollback(ctx, tx)
		return nil, err
	}
	return tx, nil
}

const (
	holdForSQL = "SELECT pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)"
	tableSQL   = "SELECT $1::text::pg_catalog.regclass::text"
)

// hold keeps writers from a table until the transaction ends. Readers go on.
func hold(ctx context.Context, tx pgx.Tx, table string, atMost time.Duration) error {
	var name string // as the server quotes it
	if err := tx.QueryRow(ctx, tableSQL, table).Scan(&name); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, holdForSQL, strconv.FormatInt(atMost.Milliseconds(), 10)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "LOCK TABLE "+name+" IN SHARE MODE")
	return err
}

// beginSQL begins a transaction in which names without a schema mean PostgreSQL's own. Else a role that may create in the
// search_path could put an operator there, and the comparison would run it. SET takes no snapshot.
const beginSQL = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog, pg_temp"

// betweenSnapshots is how long meet waits before it takes another snapshot.
const betweenSnapshots = 5 * time.Millisecond

// meet takes snapshot after snapshot until the positions in one are as wanted.
func (c Comparison) meet(ctx context.Context, store *cursor.Store, wait time.Duration, wanted func(old, recent cursor.Position) bool) (pgx.Tx, cursor.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+askTimeout)
	defer cancel()
	late := time.After(wait)
	for {
		snapshot, err := store.Pool().BeginTx(ctx, pgx.TxOptions{BeginQuery: beginSQL})
		if err != nil {
			return nil, "", err
		}
		old, recent, err := c.positions(ctx, snapshot, store.Config().Schema)
		if err == nil && wanted(old.Position, recent.Position) {
			return snapshot, old.Position, nil
		}
		rollback(ctx, snapshot)
		if err == nil {
			err = errors.Join(stands(old, recent), stands(recent, old))
		}
		if err != nil {
			return nil, "", err
		}
		select {
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		case <-late:
			return nil, "", fmt.Errorf("%w within %v: at the end %s was at %q, and %s at %q", ErrApart, wait,
				visible.Cut(c.Old), visible.Cut(string(old.Position)), visible.Cut(c.New), visible.Cut(string(recent.Position)))
		case <-time.After(betweenSnapshots):
		}
	}
}

// stands returns an error if a version does not deliver and is behind the other, so that waiting does not help.
func stands(version, other cursor.Row) error {
	if version.State == cursor.Running || version.Position >= other.Position {
		return nil
	}
	return fmt.Errorf("%w: %s is %s at %q, and %s is at %q", ErrApart, visible.Cut(version.Process), version.State, visible.Cut(string(version.Position)),
		visible.Cut(other.Process), visible.Cut(string(other.Position)))
}

// positions returns where the versions are, and whether they go on: the rows have no more than that. It is the first
// statement of the transaction, so the snapshot is taken with it.
func (c Comparison) positions(ctx context.Context, snapshot pgx.Tx, schema string) (old, recent cursor.Row, err error) {
	cursors := pgx.Identifier{schema, "cursor"}.Sanitize()
	rows, err := snapshot.Query(ctx, "SELECT process_name, position, state FROM "+cursors+" WHERE process_name IN ($1, $2)", c.Old, c.New)
	if err != nil {
		return old, recent, err
	}
	at := map[string]cursor.Row{}
	var row cursor.Row
	if _, err := pgx.ForEachRow(rows, []any{&row.Process, &row.Position, &row.State}, func() error { at[row.Process] = row; return nil }); err != nil {
		return old, recent, err
	}
	for _, name := range []string{c.Old, c.New} {
		if _, ok := at[name]; !ok {
			return old, recent, fmt.Errorf("%w: %q", cursor.ErrUnknown, name)
		}
	}
	return at[c.Old], at[c.New], nil
}

const (
	// boundSQL has the server plan for all rows, and end the query although this program may be gone by then.
	boundSQL = "SELECT pg_catalog.set_config('cursor_tuple_fraction', '1', true), pg_catalog.set_config('statement_timeout', $1, true)"
	// differencesSQL is for a query in front of which nothing else fits: it may begin with WITH or a parenthesis.
	differencesSQL = "DECLARE difference NO SCROLL CURSOR FOR "
)

// differences runs the query. A cursor of the server fetches only the rows that are wanted: two versions may differ in
// all of them.
func (c Comparison) differences(ctx context.Context, snapshot pgx.Tx) (d Difference, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+askTimeout) // the server ends it sooner
	defer cancel()
	if _, err := snapshot.Exec(ctx, boundSQL, strconv.FormatInt(c.Timeout.Milliseconds(), 10)); err != nil {
		return d, err
	}
	// In this protocol the server takes one statement alone: a second one after a semicolon would not be compared, and
	// COMMIT would end the transaction that can only read.
	if _, err := snapshot.Conn().PgConn().ExecParams(ctx, differencesSQL+c.SQL, nil, nil, nil, nil).Close(); err != nil {
		return d, unqualified(err)
	}
	fetch := "FETCH FORWARD " + strconv.Itoa(c.Limit+1) + " FROM difference"
	rows, err := snapshot.Query(ctx, fetch, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return d, err
	}
	defer rows.Close()
	for _, column := range rows.FieldDescriptions() {
		d.Columns = append(d.Columns, column.Name)
	}
	for rows.Next() {
		if len(d.Rows) == c.Limit {
			d.More = true
			continue // it is the last one
		}
		d.Rows = append(d.Rows, texts(rows.RawValues()))
	}
	return d, rows.Err()
}

// unqualified adds to an error of a name that is not there what the query does not see.
func unqualified(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && slices.Contains([]string{"42P01", "42883", "42704"}, refused.Code) { // a table, a function or an operator, a type
		return fmt.Errorf("%w; the search_path is pg_catalog: write the schema before each other name, as in public.balance or a OPERATOR(public.=) b", err)
	}
	return err
}

// texts returns the values of a row, which the server has sent as text.
func texts(values [][]byte) []string {
	row := make([]string, len(values))
	for i, value := range values {
		row[i] = "NULL"
		if value != nil {
			row[i] = string(value)
		}
	}
	return row
}
