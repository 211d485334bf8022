package sql

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// failure returns which statement failed, and whether it always will.
func (s *Sink) failure(applied int, d processor.Delivery, err error) error {
	where := s.ordinal(min(applied, len(s.statements)-1))
	if errors.Is(err, errNoRow) {
		return processor.Permanent(fmt.Errorf("apply record %q: %s: %w, and the sink has `rows: at_least 1`; "+
			"nothing was applied: correct the row, or what the statement looks for", visible.Cut(d.ID), where, err))
	}
	return s.said(d, where, err)
}

// Broken words the server's error about a deferred constraint that a record broke, as DeliverTx does: see
// processor.TxSink.
func (s *Sink) Broken(d processor.Delivery, err error) error {
	return s.said(d, "its deferred constraints", err)
}

// ordinal names a statement; i counts from 0.
func (s *Sink) ordinal(i int) string {
	return fmt.Sprintf("statement %d of %d", i+1, len(s.statements))
}

// said words an error about a record, above all the server's.
func (s *Sink) said(d processor.Delivery, where string, err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return fmt.Errorf("apply record %q: %w", visible.Cut(d.ID), err)
	}
	err = fmt.Errorf("apply record %q: %s: %w%s", visible.Cut(d.ID), where, &serverError{pgErr, s.secrets.Quote(pgErr.Message, d.Redact)}, nextStep(pgErr.Code))
	switch {
	case pgErr.Code == insufficientPrivilege:
		return processor.Refused(err)
	case isPermanent(pgErr.Code):
		return processor.Permanent(err)
	default:
		return err
	}
}

// insufficientPrivilege is the server's error about the role, whatever the record.
const insufficientPrivilege = "42501"

// isPermanent reports that the server refuses the record's data. See the package comment.
func isPermanent(sqlState string) bool {
	switch class(sqlState) {
	case "22", "23", "44", "54":
		return true
	default:
		return false
	}
}

func nextStep(sqlState string) string {
	switch class(sqlState) {
	case "22", "23", "44", "54":
		return "; correct the row or the statement"
	case "42", "0A":
		return "; correct the statement, the schema or the grants: doctor checks the statement"
	default:
		return ""
	}
}

func class(sqlState string) string { return sqlState[:min(2, len(sqlState))] }

// codeOf returns the SQLSTATE of a server's error; "" if the server has not answered with one.
func codeOf(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return ""
	}
	return pgErr.Code
}

// serverError replaces the text of the server's error, which quotes values, however large, and may break lines.
type serverError struct {
	*pgconn.PgError
	message string
}

// maxErrorText bounds the quote of the server, in bytes.
const maxErrorText = 500

func (e *serverError) Error() string {
	return e.Severity + ": " + visible.Start(e.message, maxErrorText) + " (SQLSTATE " + e.Code + ")"
}

func (e *serverError) Unwrap() error { return e.PgError }
