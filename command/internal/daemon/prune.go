package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Prune carries out the rules of a configuration once, or those of some tables, and returns a report of each. With
// preview it removes nothing. The reports are valid also with an error, which joins those of all rules. It is a
// *rules.PassesCursor if a cursor kept a rule from its end.
func Prune(ctx context.Context, c Config, tables []string, pass Pass) ([]rules.Report, error) {
	if len(c.Rules) == 0 {
		return nil, usage("the file has no rule of retention: add one, as in `retention: {%s: {keep: 168h}}`", c.Processes[0].Source.Table)
	}
	for _, name := range tables {
		if !slices.ContainsFunc(c.Rules, func(r TableRule) bool { return r.Table == name }) {
			return nil, usage("%s has no rule of retention: the file has rules of %s", name, oneOf(c.ruled()))
		}
	}
	pool, store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	defer c.stores.close()
	var all []rules.Report
	var errs []error
	for _, r := range c.Rules {
		if len(tables) > 0 && !slices.Contains(tables, r.Table) {
			continue
		}
		report, err := c.prune(ctx, pool, store, r, pass)
		if err == nil {
			err = report.Refused(r.Keep)
		}
		all, errs = append(all, report), append(errs, err)
	}
	return all, Reachable(errors.Join(errs...))
}

// Pass is rules.Pass, or rules.Preview.
type Pass func(context.Context, rules.Config) (rules.Report, error)

// ruled returns the tables that have a rule.
func (c Config) ruled() (all []string) {
	for _, r := range c.Rules {
		all = append(all, r.Table)
	}
	return all
}

// prune carries out one rule.
func (c Config) prune(ctx context.Context, pool *pgxpool.Pool, store *cursor.Store, r TableRule, pass Pass) (rules.Report, error) {
	config, err := c.passConfig(ctx, pool, store, r, r.deletes())
	if err != nil {
		return rules.Report{Table: r.Table, Mode: r.Mode}, fmt.Errorf("retention of %s: %w", visible.Line(r.Table), err)
	}
	report, err := pass(ctx, config)
	if report.Table == "" {
		report.Table, report.Mode = r.Table, r.Mode
	}
	if err != nil {
		err = fmt.Errorf("retention of %s: %w", visible.Line(r.Table), err)
	}
	return report, err
}

// passConfig finds out who reads the table of a rule: processes of the file, and cursors of other files, of the table
// itself, of a part of it, and of a table above it. It refuses while a cursor is there whose table is not known.
// deletes: the pass may delete rows.
func (c Config) passConfig(ctx context.Context, pool *pgxpool.Pool, store *cursor.Store, r TableRule, deletes bool) (rules.Config, error) {
	config := rules.Config{Rule: r.Rule, Operator: operator.New(store)}
	var err error
	if config.Shelf, err = c.shelf(ctx, r); err != nil {
		return config, err
	}
	found := retention{config: c, pool: pool, store: store, pause: pause}
	if err := found.readers(ctx); err != nil {
		return config, err
	}
	if err := found.certain(); err != nil {
		return config, err
	}
	i := slices.IndexFunc(c.Processes, func(p Process) bool { return p.Source.Table == r.Table })
	own := found.of(c.Processes[i].Name)
	all := found.all()
	if deletes {
		if err := uncascaded(ctx, pool, own.Table, all); err != nil {
			return config, err
		}
	}
	for _, reader := range all {
		shares, err := related(ctx, pool, own.Table, reader.table)
		if err != nil {
			return config, err
		}
		if !shares {
			config.Others = append(config.Others, reader.Process)
			continue
		}
		config.Readers = append(config.Readers, c.ruleReader(reader.Reader))
	}
	config.Source = c.leading(own)
	return config, nil
}

// of returns the table of a process.
func (r *retention) of(process string) Retention {
	i := slices.IndexFunc(r.tables, func(t Retention) bool {
		return slices.ContainsFunc(t.Readers, func(reader Reader) bool { return reader.Process == process })
	})
	return r.tables[i]
}

// leading returns the source in whose order rows go: one in the order of time, if there is one.
func (c Config) leading(t Retention) *table.Source {
	for _, reader := range t.Readers {
		i := slices.IndexFunc(c.Processes, func(p Process) bool { return p.Name == reader.Process })
		if i >= 0 && c.Processes[i].filled().Source.Order == table.CreatedAt {
			return reader.source
		}
	}
	return t.Readers[0].source
}

func (c Config) ruleReader(reader Reader) rules.Reader {
	r := rules.Reader{Process: reader.Process, Source: reader.source, Problem: reader.Problem, Start: processor.Beginning}
	if i := slices.IndexFunc(c.Processes, func(p Process) bool { return p.Name == reader.Process }); i >= 0 {
		r.Listed = true
		if c.Processes[i].Start != "" {
			r.Start = c.Processes[i].Start
		}
	}
	return r
}

// certain refuses if it is not known which table a cursor reads.
func (r *retention) certain() error {
	unknown := slices.Clone(r.unknown)
	for _, e := range r.elsewhere {
		if e.table == "" {
			unknown = append(unknown, e.Process)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	forget := make([]string, len(unknown))
	for i, process := range unknown {
		forget[i] = fmt.Sprintf("ordered-dispatcher process forget %s --reason …", visible.Shell(process))
		unknown[i] = visible.Line(process)
	}
	return fmt.Errorf("%w: no command can find out which table these cursors read, since no file has run them, or their table is gone: %s. Put each into the file, "+
		"or run it once with this version; if nobody runs it any more: %s", rules.ErrUnknown, oneOf(unknown), strings.Join(forget, "; "))
}

// relatedSQL reports whether two tables are the same, or one is below the other. A partition that retention has closed
// ($3) counts as one until it is dropped, also once it is detached. It needs no right to them.
const relatedSQL = `/* daemon.related */
WITH RECURSIVE up (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT i.inhparent FROM pg_inherits i JOIN up ON i.inhrelid = up.oid
), down (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT o.conrelid FROM pg_constraint o WHERE o.conname = $3 AND obj_description(o.oid, 'pg_constraint') = $1
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN down ON i.inhparent = down.oid
)
SELECT coalesce(to_regclass($2)::oid IN (SELECT oid FROM up UNION SELECT oid FROM down), false)`

func related(ctx context.Context, pool *pgxpool.Pool, one, other string) (is bool, err error) {
	if one == other {
		return true, nil
	}
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, relatedSQL, binary, one, other, table.Closing).Scan(&is)
	})
	return is, err
}

// PrintPruned writes reports for people.
func PrintPruned(w io.Writer, all []rules.Report, verb string) error {
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "%s (%s): %s\n", visible.Line(r.Table), r.Mode, visible.Line(summary(r, verb)))
		for _, p := range r.Waiting {
			fmt.Fprintf(&b, "  %s\n", visible.Line(p))
		}
		for _, h := range r.Holds {
			fmt.Fprintf(&b, "  %s\n", visible.Line(h.String()))
		}
	}
	_, err := io.WriteString(w, visible.Text(b.String()))
	return err
}

// summary describes a pass in a line. verb is "removed", or what would be done.
func summary(r rules.Report, verb string) string {
	if r.Mode == rules.ModeDrop {
		return fmt.Sprintf("%s %s", amount(len(r.Partitions), "partition"), verb)
	}
	text := fmt.Sprintf("%s %s", amount(int(r.Rows), "row"), verb)
	if r.Through != "" {
		text += fmt.Sprintf(" in %s, up to %s", amount(r.Batches, "transaction"), visible.Cut(string(r.Through)))
	}
	return text
}
