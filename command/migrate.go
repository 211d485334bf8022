package command

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

type migrateCommand struct {
	Up     migrateUp     `cmd:"" help:"Apply the missing migrations. Several programs may do so at once."`
	Down   migrateDown   `cmd:"" help:"Undo the last migration. Undoing the first one removes every cursor."`
	Status migrateStatus `cmd:"" help:"Show which migrations are applied."`
	Print  migratePrint  `cmd:"" help:"Print the SQL, for a migration tool of your own."`

	Outbox     migrateOutbox     `cmd:"" help:"Print the SQL of an outbox table, which producers write to, or make the table with --apply."`
	Follow     migrateFollow     `cmd:"" help:"Print the SQL that makes an existing table a good source. Exits with 1 if SQL alone does not."`
	Shadow     migrateShadow     `cmd:"" help:"Print the SQL of a table of recorded calls, for a process with shadow, or make the table with --apply."`
	Partitions migratePartitions `cmd:"" help:"Make the partitions of an outbox for today and the next days, those that are missing."`
}

func (f optionalFile) migrations(sys system) (migrations.Config, error) {
	config, err := f.load(sys)
	return migrations.Config{ConnString: config.Database, Schema: config.Schema, Waiting: func(session string) {
		fmt.Fprintln(sys.err(), "waiting for the tables, which are in use by", session)
	}}, err
}

type migrateUp struct{ optionalFile }

// Run is called by kong.
func (c *migrateUp) Run(ctx context.Context, sys system) error {
	config, err := c.migrations(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	applied, err := migrations.Up(ctx, config)
	for _, m := range applied {
		fmt.Fprintln(sys.stdout, "applied", m.Name)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(sys.stdout, "nothing to apply")
	}
	return daemon.Reachable(err)
}

type migrateDown struct {
	optionalFile
	Yes bool `help:"Required, because the data of the tables is lost, including the position of each process."`
}

// Run is called by kong.
func (c *migrateDown) Run(ctx context.Context, sys system) error {
	if !c.Yes {
		return &daemon.UsageError{Err: errors.New("migrate down deletes the tables, and with them the position of each process: repeat it with --yes")}
	}
	config, err := c.migrations(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	undone, err := migrations.Down(ctx, config)
	switch {
	case err != nil:
		return daemon.Reachable(err)
	case undone == nil:
		fmt.Fprintln(sys.stdout, "nothing to take back")
	default:
		fmt.Fprintln(sys.stdout, "took back", undone.Name)
	}
	return nil
}

type migrateStatus struct{ optionalFile }

// Run is called by kong.
func (c *migrateStatus) Run(ctx context.Context, sys system) error {
	config, err := c.migrations(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	all, err := migrations.Status(ctx, config)
	if err != nil {
		return daemon.Reachable(err)
	}
	columns := tabwriter.NewWriter(sys.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "VERSION\tAPPLIED\tFILE")
	for _, m := range all {
		applied, name := "no", m.Name
		if !m.AppliedAt.IsZero() {
			applied = m.AppliedAt.Format(time.RFC3339)
		}
		if name == "" {
			name = "(from a newer ordered-dispatcher)"
		}
		fmt.Fprintf(columns, "%d\t%s\t%s\n", m.Version, applied, name)
	}
	return columns.Flush()
}

type migratePrint struct {
	Schema string `placeholder:"NAME" default:"public" help:"Schema of the cursor tables."`
}

// Run is called by kong.
func (c *migratePrint) Run(sys system) error { return migrations.Print(sys.stdout, c.Schema) }
