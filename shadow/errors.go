package shadow

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// ErrOtherTable means that the name of the table is taken by something that holds no calls.
var ErrOtherTable = errors.New("it is not a table of recorded calls")

// missing are the SQLSTATEs that concern every record: no such table, schema or column, or no right.
var missing = []string{"42P01", "3F000", "42703", "42501", "42P10"}

// failure words the server's error about a row.
func (s *Sink) failure(d processor.Delivery, err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return fmt.Errorf("record the call of record %q: %w", visible.Cut(d.ID), err)
	}
	err = fmt.Errorf("record the call of record %q in %s: %w", visible.Cut(d.ID), s.config.Table.Sanitize(), err)
	switch class := pgErr.Code[:min(2, len(pgErr.Code))]; {
	case slices.Contains(missing, pgErr.Code):
		return processor.Refused(fmt.Errorf("%w; make the table and grant the rights: doctor names what is missing", err))
	case class == "22" || class == "54": // the row cannot hold the record
		return processor.Permanent(err)
	default:
		return err
	}
}
