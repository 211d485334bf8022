package command

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
)

type migrateShadow struct {
	databaseFile
	Table string `placeholder:"NAME" default:"public.shadow_calls" help:"The table, with its schema, as in shadow.table."`
	Apply bool   `help:"Make the table, instead of printing its SQL."`
}

// Run is called by kong.
func (c *migrateShadow) Run(ctx context.Context, sys system) error {
	name, err := pgname.Parse(c.Table)
	if err != nil {
		return &daemon.UsageError{Err: fmt.Errorf("--table: %w: write a schema and a name, such as public.shadow_calls", err)}
	}
	if len(name) != 2 {
		return &daemon.UsageError{Err: fmt.Errorf("--table %s: write a schema and a name, such as public.shadow_calls", c.Table)}
	}
	if !c.Apply {
		_, err = fmt.Fprint(sys.stdout, visible.SQL(shadow.SQL(pgx.Identifier(name))))
		return err
	}
	return c.asOwner(ctx, sys, func(ctx context.Context, pool *pgxpool.Pool) error {
		made, err := shadow.Create(ctx, pool, name)
		if err != nil {
			return err
		}
		verdict := "is there already"
		if made {
			verdict = "made"
		}
		fmt.Fprintln(sys.stdout, visible.Inline(c.Table), verdict)
		return nil
	})
}
