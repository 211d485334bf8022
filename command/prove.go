package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/prove"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// subject holds the flags that name a table: a process of a file, or the table itself.
type subject struct {
	source
	Database string   `placeholder:"URL" help:"Connection string. Default: the file's, or DATABASE_URL."`
	Table    string   `placeholder:"NAME" help:"The table, with its schema, if there is no file."`
	Order    []string `placeholder:"COLUMN" help:"With --table: the columns of the order, an id or a time and an id. Default: created_at,id if the table allows it, or id."`
	Time     string   `placeholder:"COLUMN" help:"With --table and an order by id: the column with the time of the insert. Default: created_at, if there is one."`
	Process  string   `arg:"" optional:"" help:"Name of the process in the file. Default: the only one."`
}

// subject returns the configuration, and the table to look at.
func (s subject) subject(sys system) (config daemon.Config, source table.Config, err error) {
	if s.Config != "" && s.Table != "" {
		return config, source, &daemon.UsageError{Err: errors.New("name a file with -c, or a table with --table, and not both")}
	}
	if s.Table == "" {
		var path string
		if config, path, err = s.read(sys); err != nil {
			return config, source, err
		}
		if path == "" {
			return config, source, &daemon.UsageError{Err: fmt.Errorf("name a file with -c, or a table with --table%s", looked())}
		}
		process, err := config.ProcessNamed(s.Process)
		if err != nil {
			return config, source, err
		}
		source = process.Source
		if source.Order == "" {
			source.Order = table.CreatedAt
		}
	} else if source, err = s.written(); err != nil {
		return config, source, err
	}
	if s.Database != "" {
		config.Database = s.Database
	}
	config, err = withDatabase(config, sys)
	return config, source, err
}

// written returns the table that the flags describe.
func (s subject) written() (table.Config, error) {
	if s.Process != "" {
		return table.Config{}, &daemon.UsageError{Err: fmt.Errorf("%s would be a process of a file: name the file with -c, and leave out --table", s.Process)}
	}
	source := table.Config{Table: s.Table, Columns: table.Columns{CreatedAt: s.Time}}
	switch len(s.Order) {
	case 0:
	case 1:
		source.Order, source.Columns.ID = table.ID, s.Order[0]
	case 2:
		source.Order, source.Columns.CreatedAt, source.Columns.ID = table.CreatedAt, s.Order[0], s.Order[1]
	default:
		return source, &daemon.UsageError{Err: errors.New("--order takes an id, or a time and an id")}
	}
	return source, nil
}

type proveCommand struct {
	subject
	For   time.Duration `default:"1m" help:"How long to measure."`
	Every time.Duration `default:"100ms" help:"How often the readers look. Give it the interval at which your loop polls."`
	JSON  bool          `name:"json" help:"Print JSON on one line. Durations are in nanoseconds."`
}

// Run is called by kong.
func (c *proveCommand) Run(ctx context.Context, sys system, logger *slog.Logger) error {
	if c.For <= 0 || c.Every < time.Millisecond {
		return &daemon.UsageError{Err: errors.New("--for must be more than 0, and --every at least 1ms")}
	}
	config, source, err := c.subject.subject(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	var report prove.Report
	err = config.WithPool(ctx, "prove", func(ctx context.Context, pool *pgxpool.Pool) error {
		report, err = prove.Run(ctx, pool, prove.Config{Table: source, For: c.For, Every: c.Every, Logger: logger, Began: func(r prove.Report) {
			c.began(sys.stderr, r)
		}})
		return err
	})
	if err != nil {
		return c.refused(err)
	}
	if c.JSON {
		return prove.PrintJSON(sys.stdout, report)
	}
	return prove.Print(sys.stdout, sys.out().Width, report)
}

func (c *proveCommand) began(w io.Writer, r prove.Report) {
	fmt.Fprintf(w, "measuring %s for %s; Ctrl-C ends it and prints what was seen\n", visible.Inline(r.Table), c.For)
}

// asFlags puts flags in the place of the keys of a file.
var asFlags = strings.NewReplacer(
	"name it in source.columns.id:", "name it with --order COLUMN, or --order TIME,COLUMN:",
	"source.columns.id", "--order",
	"in source.columns.created_at:", "with --order TIME,ID:",
	"source.columns.created_at", "--order",
	"set source.order: id", "set --order ID",
	"fix: order by created_at", "fix: set --order TIME,ID",
	"in source.table", "with --table",
	"write source.table as", "write --table",
)

// refused makes wrong use of a table that cannot be read as it is. Without a file, the next step is a flag.
func (s subject) refused(err error) error {
	if !errors.Is(err, prove.ErrRefused) {
		return err
	}
	if s.Table != "" {
		err = errors.New(asFlags.Replace(err.Error()))
	}
	return &daemon.UsageError{Err: err}
}
