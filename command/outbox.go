package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/draft"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// databaseFile is the flag of commands that need the database, and no cursor tables.
type databaseFile struct{ source }

// asOwner runs f with connections to the database.
func (f databaseFile) asOwner(ctx context.Context, sys system, do func(context.Context, *pgxpool.Pool) error) error {
	config, err := optionalFile{source: f.source}.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	return config.AsOwner(ctx, do)
}

// outboxTable names the table of an outbox.
type outboxTable struct {
	Table string `placeholder:"NAME" default:"public.outbox" help:"The table, with its schema, as in source.table: sales.\"My Table\"."`
}

func (t outboxTable) open(c outbox.Config) (*outbox.Outbox, error) {
	name, err := pgname.Parse(t.Table)
	if err != nil {
		return nil, &daemon.UsageError{Err: fmt.Errorf("--table: %w: write a schema and a name, such as public.outbox", err)}
	}
	if len(name) != 2 {
		return nil, &daemon.UsageError{Err: fmt.Errorf("--table %s: write a schema and a name, such as public.outbox", t.Table)}
	}
	c.Table = name
	o, err := outbox.New(c)
	if err != nil {
		return nil, &daemon.UsageError{Err: err}
	}
	return o, nil
}

type migrateOutbox struct {
	databaseFile
	outboxTable
	Raw         bool `help:"Payloads are bytes (bytea), and not JSON."`
	Partitioned bool `help:"The table has a partition for each day. Run migrate partitions every day."`
	Apply       bool `help:"Make the table, instead of printing its SQL, with the partitions of today and the next 7 days."`
}

// Run is called by kong.
func (c *migrateOutbox) Run(ctx context.Context, sys system) error {
	o, err := c.open(outbox.Config{Raw: c.Raw, Partitioned: c.Partitioned})
	if err != nil {
		return err
	}
	if !c.Apply {
		_, err = fmt.Fprint(sys.stdout, o.SQL())
		return err
	}
	return c.asOwner(ctx, sys, func(ctx context.Context, pool *pgxpool.Pool) error {
		made, err := o.Create(ctx, pool)
		if err != nil {
			return err
		}
		verdict := "is there already"
		if made {
			verdict = "made"
		}
		fmt.Fprintln(sys.stdout, visible.Inline(c.Table), verdict)
		if !c.Partitioned {
			return nil
		}
		return makePartitions(ctx, sys.stdout, pool, o, outbox.DefaultDaysAhead)
	})
}

type migratePartitions struct {
	databaseFile
	outboxTable
	Ahead int `placeholder:"DAYS" default:"7" help:"How many days after today get a partition, between 1 and 366."`
}

// Run is called by kong.
func (c *migratePartitions) Run(ctx context.Context, sys system) error {
	o, err := c.open(outbox.Config{Partitioned: true})
	if err != nil {
		return err
	}
	if c.Ahead < 1 || c.Ahead > outbox.MaxDaysAhead {
		return &daemon.UsageError{Err: fmt.Errorf("--ahead must be between 1 and %d, got %d", outbox.MaxDaysAhead, c.Ahead)}
	}
	return c.asOwner(ctx, sys, func(ctx context.Context, pool *pgxpool.Pool) error {
		return makePartitions(ctx, sys.stdout, pool, o, c.Ahead)
	})
}

func makePartitions(ctx context.Context, stdout io.Writer, pool *pgxpool.Pool, o *outbox.Outbox, ahead int) error {
	made, err := o.MakePartitions(ctx, pool, ahead)
	for _, name := range made {
		fmt.Fprintln(stdout, visible.SQL(name), "made")
	}
	if errors.Is(err, outbox.ErrNotPartitioned) {
		return fmt.Errorf("%w: migrate outbox --partitioned makes such a table", err)
	}
	if err == nil && len(made) == 0 {
		fmt.Fprintln(stdout, "nothing to make: today and the days ahead have partitions")
	}
	return err
}

type migrateFollow struct {
	databaseFile
	Table     string `required:"" placeholder:"NAME" help:"The table, with its schema, as in source.table."`
	ID        string `name:"id" placeholder:"COLUMN" help:"The column of the ids. Default: id, or the one that init chooses if the table has none of that name."`
	CreatedAt string `placeholder:"COLUMN" default:"created_at" help:"The column of the time of the insert."`
}

// Run is called by kong.
func (c *migrateFollow) Run(ctx context.Context, sys system) error {
	return c.asOwner(ctx, sys, func(ctx context.Context, pool *pgxpool.Pool) error {
		id, err := c.id(ctx, sys.stdout, pool)
		if err != nil {
			return err
		}
		source := table.Config{Table: c.Table, Columns: table.Columns{ID: id, CreatedAt: c.CreatedAt}}
		statements, found, err := outbox.Follow(ctx, pool, source)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			fmt.Fprintln(sys.stdout, statement+";")
		}
		var left []daemon.Finding
		for _, f := range found {
			left = append(left, daemon.Finding{Process: c.Table, Severity: daemon.Severity(f.Severity), Problem: f.Problem, Fix: f.Fix})
		}
		if len(statements) == 0 && len(left) == 0 {
			fmt.Fprintln(sys.stdout, visible.Comment(c.Table+" is ready"))
		}
		if len(left) == 0 {
			return nil
		}
		return errors.Join(sys.err().Findings(left), daemon.VerdictOf("migrate follow", left))
	})
}

// id is the column of the ids. If it is not named so, the file has to name it.
func (c *migrateFollow) id(ctx context.Context, stdout io.Writer, pool *pgxpool.Pool) (string, error) {
	if c.ID != "" {
		return c.ID, nil
	}
	found, err := draft.Look(ctx, pool, c.Table)
	if errors.Is(err, draft.ErrNoTable) {
		return "id", nil // the next look reports it
	}
	if err != nil {
		return "", err
	}
	id := draft.IDOf(found)
	if id == "" {
		id = "id"
	} else if id != "id" {
		fmt.Fprintln(stdout, visible.Comment("The ids are those of "+id+": name it in source.columns.id. With --id, migrate follow takes another column."))
	}
	return id, nil
}
