package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/draft"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

type initCommand struct {
	Database string `placeholder:"URL" help:"Address of the database. Default: DATABASE_URL. The file gets no address, but names that variable."`
	Table    string `placeholder:"NAME" help:"Table to deliver, with its schema, as in SQL. Without it, init lists the tables that can be delivered."`
	Sink     string `placeholder:"KIND" default:"stdout" help:"Kind of the receiver, such as webhook or kafka. Its settings are examples to be corrected. Default: ${default}."`
	Output   string `short:"o" placeholder:"FILE" default:"dispatcher.yaml" help:"File to write; - is standard output. Default: ${default}."`
	Force    bool   `help:"Write over a file that is there, but not through a link."`
	Process  string `placeholder:"NAME" help:"Name of the process. Default: that of the table."`
	Schema   string `placeholder:"NAME" help:"Schema of the cursor tables. Default: public."`
	Role     string `placeholder:"NAME" help:"Also print the grants for this role, which is to run the process."`
}

// Run is called by kong.
func (c *initCommand) Run(ctx context.Context, sys system) error {
	spec, err := c.kind(sys)
	if err != nil {
		return err
	}
	given := sys.env
	if c.Database != "" {
		sys.env = func(name string) (string, bool) {
			if name == "DATABASE_URL" {
				return c.Database, true
			}
			return given(name)
		}
	}
	config, err := withDatabase(daemon.Config{Schema: c.Schema}, sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	return config.AsOwner(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
		if c.Table == "" {
			return candidates(ctx, sys.stdout, pool)
		}
		return c.draft(ctx, sys, pool, spec)
	})
}

func (c *initCommand) kind(sys system) (sinks.Spec, error) {
	var names []string
	for _, spec := range sys.kinds.Sinks {
		if spec.Name == c.Sink {
			return spec, nil
		}
		names = append(names, spec.Name)
	}
	return sinks.Spec{}, &daemon.UsageError{Err: fmt.Errorf("--sink %s: there is no such kind of sink: there are %s", c.Sink, strings.Join(names, ", "))}
}

// draft writes the file for one table, and prints what comes next.
func (c *initCommand) draft(ctx context.Context, sys system, pool *pgxpool.Pool, spec sinks.Spec) error {
	found, err := draft.Look(ctx, pool, c.Table)
	switch {
	case errors.Is(err, draft.ErrNoTable):
		return &daemon.UsageError{Err: fmt.Errorf("%w; without --table, init lists the tables that there are", err)}
	case err != nil:
		return err
	case found.Kind != "r" && found.Kind != "p":
		return &daemon.UsageError{Err: fmt.Errorf("%s is a view or a foreign table, whose rows have no order that can be trusted: name the table that has them", visible.Line(c.Table))}
	}
	proposal, choice := draft.Propose(found), draft.Choice{Process: c.Process, Schema: c.Schema, Sink: spec}
	text := proposal.Text(choice)
	unset, err := c.check(text, sys)
	if err != nil {
		return err
	}
	if err := c.write(sys.stdout, text); err != nil {
		return err
	}
	said := sys.stdout
	if c.Output == "-" {
		said = sys.stderr
	}
	return c.guide(ctx, guide{sys: sys, w: said, pool: pool, proposal: proposal, choice: choice, unset: unset})
}

// check reads the text as the program does. A variable that an example names need not be set yet: it returns those.
func (c *initCommand) check(text string, sys system) (unset []string, err error) {
	_, err = daemon.Parse(c.Output, []byte(text), func(name string) (string, bool) {
		value, ok := sys.env(name)
		if !ok {
			unset = append(unset, name)
			return "example", true
		}
		return value, ok
	}, sys.kinds)
	if err != nil {
		return unset, fmt.Errorf("the proposal is not a valid configuration, so nothing was written: %w\n%s", err, text)
	}
	slices.Sort(unset)
	return slices.Compact(unset), nil
}

// write makes the file.
func (c *initCommand) write(stdout io.Writer, text string) error {
	if c.Output == "-" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	file, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		file, err = c.over()
	}
	if err != nil {
		return &daemon.UsageError{Err: fmt.Errorf("write the configuration: %w", err)}
	}
	_, err = io.WriteString(file, text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// over opens the file that is there, and empties it. Its owner and its mode stay. A link is refused: another user who may
// write to the directory could have made it, and the file to which it leads would be lost.
func (c *initCommand) over() (*os.File, error) {
	name := visible.Line(c.Output)
	if !c.Force {
		return nil, fmt.Errorf("%s is there already: name another file with -o, or write over it with --force", name)
	}
	seen, err := os.Lstat(c.Output)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a link, or no regular file: name with -o the file that it leads to, or remove it", name)
	}
	file, err := os.OpenFile(c.Output, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%s has just become another file: nothing was written", name)
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return file, nil
}

// guide is what is printed after the file is written.
type guide struct {
	sys      system
	w        io.Writer
	pool     *pgxpool.Pool
	proposal draft.Proposal
	choice   draft.Choice
	unset    []string
	sql      bool // SQL was printed
	wrong    bool // doctor found more than notes
}

func (c *initCommand) guide(ctx context.Context, g guide) error {
	name := visible.Shell(c.Output)
	if c.Output != "-" {
		fmt.Fprintf(g.w, "wrote %s: process %s delivers %s to %s\n\n", visible.Line(c.Output), visible.Line(g.proposal.Process(g.choice)), visible.Line(g.proposal.Table.Written()), g.choice.Sink.Name)
	} else {
		name = "FILE"
	}
	statements, err := c.proposed(ctx, g)
	if err != nil {
		return err
	}
	if len(statements) > 0 {
		fmt.Fprintln(g.w, "-- SQL that the table needs. The owner runs it statement by statement.")
		for _, statement := range statements {
			fmt.Fprintln(g.w, visible.SQL(strings.TrimSuffix(statement, ";"))+";")
		}
		fmt.Fprintln(g.w)
		g.sql = true
	}
	config, err := c.examined(g)
	if err != nil {
		return err
	}
	findings, err := daemon.Doctor(ctx, config)
	if err == nil {
		findings = slices.DeleteFunc(findings, func(f daemon.Finding) bool { // cursors of other files
			return f.Severity == daemon.Note && f.Process != "" && !slices.Contains(config.Names(), f.Process)
		})
		g.wrong = daemon.Wrong(findings)
		fmt.Fprintln(g.w, "doctor finds:")
		err = screen.NewPage(g.w, g.sys.look).Findings(findings)
	}
	if err != nil {
		return err
	}
	if c.Role != "" {
		fmt.Fprintln(g.w)
		if err := daemon.Grants(ctx, g.w, daemon.GrantsConfig{Config: config, Role: c.Role}); err != nil {
			fmt.Fprintln(g.w, visible.Comment("not all grants are known yet: run `ordered-dispatcher grants` again after the steps below"))
		}
	}
	c.next(g, name)
	return nil
}

// proposed is the SQL that the table needs.
func (c *initCommand) proposed(ctx context.Context, g guide) ([]string, error) {
	statements := slices.Clone(g.proposal.SQL)
	if len(statements) > 0 { // the columns that they add are not there yet
		return statements, nil
	}
	source := table.Config{Table: g.proposal.Table.Written(), Order: g.proposal.Order, Preset: g.proposal.Preset, Columns: g.proposal.Columns}
	follow, _, err := outbox.Follow(ctx, g.pool, source)
	if err != nil {
		return nil, fmt.Errorf("look for what the table lacks: %w", err)
	}
	return append(statements, follow...), nil
}

// examined is the configuration that doctor looks at. The examples of a sink lead to no receiver, so it has stdout in
// their place.
func (c *initCommand) examined(g guide) (daemon.Config, error) {
	if i := slices.IndexFunc(g.sys.kinds.Sinks, func(spec sinks.Spec) bool { return spec.Name == "stdout" }); i >= 0 {
		g.choice.Sink = g.sys.kinds.Sinks[i]
	}
	config, err := daemon.Parse(c.Output, []byte(g.proposal.Text(g.choice)), g.sys.env, g.sys.kinds)
	if err != nil {
		return config, &daemon.UsageError{Err: err}
	}
	return withDatabase(config, g.sys)
}

func (c *initCommand) next(g guide, name string) {
	fmt.Fprintln(g.w, "\nnext:")
	if c.Database != "" {
		fmt.Fprintln(g.w, "  export DATABASE_URL=…    # the address that you gave with --database")
	}
	for _, variable := range g.unset {
		fmt.Fprintf(g.w, "  export %s=…\n", variable)
	}
	if len(draft.Needs(g.choice.Sink)) > 0 {
		fmt.Fprintf(g.w, "  correct the settings of %s in %s\n", g.choice.Sink.Name, visible.Line(name))
	}
	if g.sql {
		fmt.Fprintln(g.w, "  run the SQL above, as the owner of the table")
	}
	if g.wrong {
		fmt.Fprintln(g.w, "  do what follows each `fix:` above, unless one of these steps does it")
	}
	for _, step := range []string{"migrate up -c %s", "doctor -c %s", "run -c %s"} {
		fmt.Fprintf(g.w, "  ordered-dispatcher "+step+"\n", name)
	}
	fmt.Fprintf(g.w, "  ordered-dispatcher grants -c %s --role ROLE    # to run it under a role of its own\n", name)
}

// candidates lists the tables that may be delivered.
func candidates(ctx context.Context, w io.Writer, pool *pgxpool.Pool) error {
	all, err := draft.Candidates(ctx, pool)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there is no table that this role may read: give it SELECT, or make a table with `ordered-dispatcher migrate outbox`")
		return err
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "TABLE\tROWS\tPRIMARY KEY\tTIMES")
	for _, t := range all {
		rows := "?"
		if t.Rows >= 0 {
			rows = fmt.Sprintf("%.0f", t.Rows)
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", visible.Short(t.Table), rows, dashed(t.Key), dashed(t.Time))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "\nROWS is the server's estimate: ? before its first ANALYZE. TIMES are columns of type timestamptz.\nchoose one: ordered-dispatcher init --table TABLE")
	return err
}

func dashed(text string) string {
	if text == "" {
		return "-"
	}
	return visible.Start(visible.Line(text), 24)
}
