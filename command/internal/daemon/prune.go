package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
		return rules.Report{Table: r.Table, Mode: r.Filled().Mode}, fmt.Errorf("retention of %s: %w", visible.Line(r.Table), err)
	}
	report, err := pass(ctx, config)
	if report.Table == "" {
		report.Table, report.Mode = r.Table, r.Filled().Mode
	}
	if err != nil {
		err = fmt.Errorf("retention of %s: %w%s", visible.Line(r.Table), err, c.afterRefusal(report.Table, err))
	}
	return report, err
}

// usersOf is the SQL that finds the sessions that use a table, or a partition of it.
const usersOf = "SELECT pid, application_name, xact_start, query FROM pg_stat_activity WHERE pid IN (" +
	"SELECT pid FROM pg_locks WHERE relation = '%[1]s'::regclass OR relation IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '%[1]s'::regclass))"

// afterRefusal is the next step after an error of a pass; "" if it has none.
func (c Config) afterRefusal(name string, err error) string {
	var refused *pgconn.PgError
	switch {
	case waitedForLock(err):
		return "; another session uses it, and a later pass tries again. To find that: " + fmt.Sprintf(usersOf, strings.ReplaceAll(name, "'", "''"))
	case errors.Is(err, cursor.ErrUncertain):
		return "; a later pass goes on with the rows that are still there"
	case errors.As(err, &refused) && refused.Code == "42501":
		return "; next: run what `" + c.withFile("ordered-dispatcher grants -c FILE") + "` prints"
	default:
		return ""
	}
}

// passConfig finds out who reads the table of a rule: processes of the file, and cursors of other files, of the table
// itself, of a part of it, and of a table above it. It refuses while a cursor is there whose table is not known.
// deletes: the pass may delete rows.
func (c Config) passConfig(ctx context.Context, pool *pgxpool.Pool, store *cursor.Store, r TableRule, deletes bool) (rules.Config, error) {
	config := rules.Config{Rule: r.Rule, Operator: operator.New(store)}
	var err error
	if config.Since, err = config.Operator.LastEvent(ctx); err != nil {
		return config, err
	}
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
	own := found.of(r.Table)
	for _, other := range c.Rules {
		if other.Table == r.Table || found.of(other.Table).Table != own.Table {
			continue
		}
		if r.Keep > 0 {
			return config, twoRules(r, other)
		}
		config.Rule = other.Rule // of erase, whose table has another name there
	}
	watched, _ := c.presence(ctx, pool) // it is not known without the right, and only words hang on it
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
		if !shares && reader.otherwise == "" {
			config.Others = append(config.Others, reader.Process)
			continue
		}
		config.Readers = append(config.Readers, c.ruleReader(reader.Reader, watched))
	}
	config.Source = c.leading(own)
	return config, nil
}

// twoRules is the error of two rules whose names mean one table. Which of them removed a row would be a matter of luck.
func twoRules(one, other TableRule) error {
	return fmt.Errorf("retention.%s and retention.%s are rules for one table: remove one of them", visible.Line(one.Table), visible.Line(other.Table))
}

// of returns the table that a process of the file reads under a name.
func (r *retention) of(name string) Retention {
	process := r.config.Processes[slices.IndexFunc(r.config.Processes, func(p Process) bool { return p.Source.Table == name })].Name
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

func (c Config) ruleReader(reader Reader, watched presence) rules.Reader {
	r := rules.Reader{Process: reader.Process, Source: reader.source, Problem: reader.Problem, Start: processor.Beginning, Absent: watched.absent(reader.Process)}
	_, known := watched[reader.Process]
	r.Unseen = !known
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
	for i, process := range unknown {
		unknown[i] = fmt.Sprintf("cursor %s has not run, or its table is gone, so it may need any row. Run it once with this version, or put it into the file; "+
			"if nobody runs it any more: ordered-dispatcher process forget %s --reason …", visible.Line(process), visible.Shell(process))
	}
	return fmt.Errorf("%w: %s", rules.ErrUnknown, strings.Join(unknown, "; "))
}

// relatedSQL reports whether a table and those below it share a table with another one and those below that. With
// inheritance, a table may be below several. A partition that retention has closed ($3) counts as one until it is
// dropped, also once it is detached, if it has the owner of the table: another role may give its own tables such a
// constraint. It needs no right to them.
const relatedSQL = `/* daemon.related */
WITH RECURSIVE down (oid) AS (
	SELECT to_regclass($1)::oid
	UNION
	SELECT o.conrelid
	FROM pg_constraint o
	JOIN pg_class c ON c.oid = o.conrelid
	JOIN pg_class t ON t.oid = to_regclass($1) AND t.relowner = c.relowner
	WHERE o.conname = $3 AND obj_description(o.oid, 'pg_constraint') = $1
	UNION
	SELECT i.inhrelid FROM pg_inherits i JOIN down ON i.inhparent = down.oid
), up (oid) AS (
	SELECT oid FROM down
	UNION
	SELECT i.inhparent FROM pg_inherits i JOIN up ON i.inhrelid = up.oid
)
SELECT coalesce(to_regclass($2)::oid IN (SELECT oid FROM up), false)`

func related(ctx context.Context, pool *pgxpool.Pool, one, other string) (is bool, err error) {
	if one == other {
		return true, nil
	}
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, relatedSQL, binary, one, other, table.Closing).Scan(&is)
	})
	return is, err
}

// PrintPruned writes reports for people. dry: they are those of rules.Preview.
func PrintPruned(w io.Writer, all []rules.Report, dry bool) error {
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "%s (%s): %s\n", visible.Line(r.Table), r.Mode, visible.Line(summary(r, dry)))
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

// maxNamed is how many partitions a line names.
const maxNamed = 10

// summary describes a pass in a line.
func summary(r rules.Report, dry bool) string {
	verb := "removed"
	if r.Mode == rules.ModeMark {
		verb = "marked"
	}
	if dry {
		verb = "would be " + verb
	}
	if r.Mode == rules.ModeDrop {
		text := fmt.Sprintf("%s %s", amount(len(r.Partitions), "partition"), verb)
		if n := len(r.Partitions); n > 0 {
			text += ": " + strings.Join(r.Partitions[:min(n, maxNamed)], ", ")
			if n > maxNamed {
				text += ", …"
			}
		}
		return text
	}
	text := fmt.Sprintf("%s %s", amount(int(r.Rows), "row"), verb)
	if r.Through != "" {
		text += fmt.Sprintf(" in %s, up to %s", amount(r.Batches, "transaction"), visible.Cut(string(r.Through)))
	}
	return text
}
