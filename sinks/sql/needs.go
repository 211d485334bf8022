package sql

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// Needs asks the server which rights it checks for a role that runs the statements. Nothing is executed. The
// connection should have the search_path of the cursor's. Its role needs no right to the tables, but it needs the
// right to make temporary functions. Needs cannot see the rights of a statement about which the server reports
// nothing.
func (s *Sink) Needs(ctx context.Context, conn *pgx.Conn) (privilege.Needs, error) {
	var needs privilege.Needs
	err := answer.Within(ctx, s.patience, func(ctx context.Context) (err error) {
		needs, err = s.needs(ctx, conn)
		return err
	})
	return needs, secret.Guard{Secrets: s.secrets}.Error(err) // the server quotes the statement
}

func (s *Sink) needs(ctx context.Context, conn *pgx.Conn) (privilege.Needs, error) {
	var needs privilege.Needs
	tx, err := conn.Begin(ctx)
	if err != nil {
		return needs, fmt.Errorf("find out what the sql sink needs: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing was done in it
	for i, statement := range s.statements {
		more, err := privilege.Of(ctx, tx, statement.sql)
		if errors.Is(err, privilege.ErrUtility) {
			more.BlindSpots = append(more.BlindSpots, s.ordinal(i))
		} else if err != nil {
			return needs, fmt.Errorf("find out what %s of the sql sink needs: %w", s.ordinal(i), err)
		}
		needs.Add(more)
	}
	return needs, nil
}
