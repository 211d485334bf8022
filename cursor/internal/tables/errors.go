package tables

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
)

// Errors that package cursor exports: see there.
var (
	ErrNoEvent   = errors.New("nothing was changed, because the audit did not keep the event: a trigger on the table cursor_event may prevent it. Drop the trigger, or let it return NEW")
	ErrUncertain = errors.New("it is not known whether this was done")
)

// ErrNotAsLocked reports that a statement changed no row, or its transaction did not commit.
var ErrNotAsLocked = errors.New("the row is not as it was locked")

// errStandby reports that the server refused what only a primary does.
var errStandby = errors.New("the server is a standby")

// fixes maps SQLSTATEs that an operator can fix to what to do.
var fixes = map[string]string{
	"42P01":  "create the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema",
	"3F000":  "create the schema, then the tables with `ordered-dispatcher migrate up -c FILE`, or name the schema that has them with -c or --schema",
	"42703":  "the tables are of another version: run `ordered-dispatcher migrate up -c FILE`",
	"42501":  "run, as the owner, what `ordered-dispatcher grants` prints for the role; `ordered-dispatcher doctor` names what else it lacks",
	readOnly: "the server is read-only: connect to the primary (target_session_attrs=read-write)",
}

// readOnly is the SQLSTATE of a server that is not, or no longer, a primary.
const readOnly = "25006"

// Standby adds to the error of a read that asks for the timeline that the server is a standby. That is its only reason
// to refuse such a read with this SQLSTATE.
func Standby(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "55000" {
		return fmt.Errorf("%w: %w", errStandby, err)
	}
	return err
}

// Explain adds to an error what we were doing to which cursor, and the next step if there is one.
func (db *DB) Explain(verb, process string, err error) error {
	return db.WithFix(fmt.Sprintf("%s cursor %q", verb, process), err)
}

// WithFix adds to an error what we were doing, and the next step if there is one. When the server is silent, or
// turns out not to be a primary, it closes every connection of the pool: the next ones find out anew where the
// primary is.
func (db *DB) WithFix(doing string, err error) error {
	var pgErr *pgconn.PgError
	var code string
	switch {
	case errors.Is(err, errStandby):
		code = readOnly
	case errors.As(err, &pgErr):
		code = pgErr.Code
	}
	if code == readOnly || errors.Is(err, answer.ErrSilent) {
		db.Pool.Reset()
	}
	if fix, ok := fixes[code]; ok {
		return fmt.Errorf("%s: %w; %s", doing, err, fix)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Uncertain adds ErrUncertain to the error of a flush that ends with a COMMIT, unless the server itself refused
// one of its statements.
func Uncertain(err error) error {
	var pgErr *pgconn.PgError
	if err == nil || errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR" {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}

// Or returns the first error, or the second if there is none.
func Or(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
