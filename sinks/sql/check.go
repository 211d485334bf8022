package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Check has the server parse every statement. It returns all errors of the server at once: the place in
// the statement, the message, and a fix. The connection should be like the cursor's, with its role and
// search_path. Nothing is executed, and no table is locked when Check returns. conn must not be in a transaction. It
// stays usable, unless the server has not answered within 30 s: then it is closed.
//
// Check does not know about grants, or about tables that an earlier statement creates.
func (s *Sink) Check(ctx context.Context, conn *pgx.Conn) error {
	return answer.Within(ctx, s.patience, func(ctx context.Context) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return fmt.Errorf("check sql sink: %w", err)
		}
		defer func() { _ = tx.Rollback(ctx) }() // nothing to lose: it only parses
		faults := []error{checkStrings(conn.PgConn())}
		for i := range s.statements {
			if err := s.checkStatement(ctx, tx, i); err != nil {
				faults = append(faults, fmt.Errorf("check sql sink: %s: %w", s.ordinal(i), err))
			}
		}
		return errors.Join(faults...)
	})
}

// askTimeout bounds the questions of Check and Needs. Parsing a statement may wait for a table that is being altered.
const askTimeout = 30 * time.Second

// checkStrings refuses a setting: pgx's reading of '\' holds only with the default.
func checkStrings(conn *pgconn.PgConn) error {
	if conn.ParameterStatus("standard_conforming_strings") == "off" {
		return errors.New("check sql sink: standard_conforming_strings is off, so that strings end elsewhere: " +
			"ALTER ROLE … SET standard_conforming_strings = on")
	}
	return nil
}

// checkStatement parses within a savepoint, so that the next statement can be parsed whatever is wrong with this one.
func (s *Sink) checkStatement(ctx context.Context, tx pgx.Tx, i int) error {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = savepoint.Rollback(ctx) }()
	// The unnamed statement: with PgBouncer, no other one outlives a transaction.
	_, err = tx.Conn().PgConn().Prepare(ctx, "", s.statements[i].sql, nil)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	return s.explain(s.statements[i], pgErr)
}

func (s *Sink) explain(st statement, pgErr *pgconn.PgError) error {
	where := ""
	if pgErr.Position > 0 {
		where = place(st.source, st.from(byteOffset(st.sql, int(pgErr.Position)))) + ": "
	}
	hint := ""
	if pgErr.Hint != "" {
		hint = "; " + visible.Start(s.secrets.Line(pgErr.Hint), maxErrorText)
	}
	return fmt.Errorf("%s%w%s%s", where, &serverError{pgErr, s.secrets.Line(pgErr.Message)}, hint, fix(st, pgErr.Code))
}

// byteOffset returns the offset of the character at a position, which counts from 1.
func byteOffset(text string, position int) int {
	for offset := range text {
		position--
		if position == 0 {
			return offset
		}
	}
	return len(text)
}

func fix(st statement, sqlState string) string {
	switch sqlState {
	case "42P18", "42P08", "42804", "42883": // the type of a parameter is unknown, ambiguous, different, or selects no function
		if len(st.params) > 0 {
			return "; add a cast, such as @id::bigint (" + st.legend() + ")"
		}
	case "42P01", "3F000":
		return "; qualify the table with its schema, and create it first"
	case "42601":
		return "; correct the statement"
	}
	return ""
}
