package sql

import (
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

func newGuard(c Config, address *pgx.ConnConfig) secret.Guard {
	return secret.Guard{Secrets: secret.New(append(slices.Clone(c.Secrets), address.Password)...), Said: said, Hide: c.HideAnswers}
}

// said finds the server's words in an error.
func said(err error) (hidden string, ok bool) {
	switch e := err.(type) { // each error of a chain is checked by itself
	case *serverError:
		return worded(e.PgError), true
	case *pgconn.PgError:
		return worded(e), true
	case *tagError:
		return "it answered COMMIT with something else", true
	default:
		return "", false
	}
}

// sqlState is the form of PostgreSQL's codes.
var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}$`)

// worded describes the server's error by the parts that contain no words of its own.
func worded(e *pgconn.PgError) string {
	severity, code := "ERROR", "?????"
	switch e.SeverityUnlocalized {
	case "FATAL", "PANIC":
		severity = e.SeverityUnlocalized
	}
	if sqlState.MatchString(e.Code) {
		code = e.Code
	}
	return severity + ": " + secret.Hidden + " (SQLSTATE " + code + ")"
}
