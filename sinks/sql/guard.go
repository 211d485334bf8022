package sql

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

func newGuard(c RemoteConfig, address *pgx.ConnConfig) secret.Guard {
	g := secret.Guard{Secrets: secret.New(append(slices.Clone(c.Secrets), address.Password)...)}
	if c.HideAnswers {
		g.Words = words
	}
	return g
}

// words are the server's in an error.
func words(err error) (all []string) {
	var said *serverError
	if errors.As(err, &said) {
		all = append(all, clean(said.message))
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		all = append(all, pgErr.Message, pgErr.Detail, pgErr.Hint)
	}
	return all
}
