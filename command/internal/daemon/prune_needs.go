package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// ruleNeeds are the rights that a rule needs on tables, in addition to those of reading the source, and the tables
// that the role must own.
type ruleNeeds struct {
	rights []privilege.Privilege
	owned  string // "": none
}

// needsOf returns what a rule needs of the table that its source reads.
func (r TableRule) needsOf(ctx context.Context, source *table.Source) (needs ruleNeeds, err error) {
	name, err := source.Name(ctx)
	if err == nil && name == "" {
		err = fmt.Errorf("it is not certain which table %s means", visible.Line(r.Table))
	}
	if err != nil {
		return needs, err
	}
	may := func(on, right string, columns ...string) {
		needs.rights = append(needs.rights, privilege.Privilege{On: privilege.Table, Name: on, Right: right, Columns: columns})
	}
	switch r.Filled().Mode {
	case rules.ModeDrop:
		needs.owned = name
	case rules.ModeMark:
		column, err := table.ColumnName(r.Column)
		if err != nil {
			return needs, err
		}
		may(name, "SELECT", column)
		may(name, "UPDATE", column)
	case rules.ModeArchive:
		may(name, "SELECT")
		may(name, "DELETE")
		may(r.Archive, "INSERT")
	case rules.ModeFiles:
		may(name, "SELECT")
		may(name, "DELETE")
	case rules.ModeDelete:
		may(name, "DELETE")
	default:
		return needs, fmt.Errorf("it is not known which rights mode %s needs", r.Mode)
	}
	parted, err := source.Parted(ctx)
	if parted && needs.owned == "" {
		may(name, "SELECT", table.MemberColumn)
	}
	return needs, err
}

// ruleSource returns a source of the table of a rule.
func (c Config) ruleSource(r TableRule, pool *pgxpool.Pool) (*table.Source, error) {
	for _, p := range c.Processes {
		if p.Source.Table == r.Table {
			return c.keys(p, pool)
		}
	}
	return nil, fmt.Errorf("no process reads %s", visible.Line(r.Table))
}

// rules writes the needs of retention.
func (g *grants) rules(ctx context.Context) {
	if len(g.Config.Rules) == 0 {
		return
	}
	clear(g.granted) // this part is enough for a role that has the rules alone: see docs/retention.md
	g.comment("For retention: to note how far rows are gone, and to remove them. Leave it out if another role runs `ordered-dispatcher prune`.")
	g.grant(g.Role, operator.New(g.store).Needs(operator.DutyPrune)...)
	for _, r := range g.Config.Rules {
		source, err := g.Config.ruleSource(r, g.pool)
		var needs ruleNeeds
		if err == nil {
			needs, err = r.needsOf(ctx, source)
		}
		if err != nil {
			g.unknown(Process{Name: "retention of " + r.Table}, err)
			continue
		}
		g.grant(g.Role, needs.rights...)
		if needs.owned != "" {
			g.hint("Only an owner of %s and its partitions can drop these: let the owner run `ordered-dispatcher prune %[1]s`, for example from cron, with a file of its own that has the rule.", needs.owned)
		}
	}
}

// erasing writes the needs of erase, for which no rule is needed. Of a table with others below, it asks which of them has a
// row if a process reads one of them alone.
func (g *grants) erasing(ctx context.Context) {
	needs := operator.New(g.store).Needs(operator.DutyErase)
	for _, p := range g.Config.Processes {
		source, err := g.Config.keys(p, g.pool)
		if err != nil {
			continue // it is named as a need that is missing
		}
		name, err := source.Name(ctx)
		if parted, asked := source.Parted(ctx); err == nil && asked == nil && name != "" && parted {
			needs = append(needs, privilege.Privilege{On: privilege.Table, Name: name, Right: "SELECT", Columns: []string{table.MemberColumn}})
		}
		if sink, ok := p.Sink.Config.(recorder); ok {
			needs = append(needs, shadow.EraseNeeds(sink.table)...)
		}
	}
	var b strings.Builder
	for _, on := range privilege.ByObject(needs) {
		b.WriteString("\n" + visible.SQL(privilege.Grant(g.Role, on...)) + ";")
	}
	g.comment("`ordered-dispatcher erase` needs in addition DELETE on the table, or UPDATE on the columns to blank, the same and SELECT on an archive table, and this:%s", b.String())
}

const ownsSQL = `/* doctor.owns */
SELECT current_user::text, pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = $1::text::regclass`

// rules checks that the role may carry out the rules of retention.
func (d *doctor) rules(ctx context.Context) error {
	if len(d.config.Rules) == 0 || d.tableless {
		return nil
	}
	needed := operator.New(d.store).Needs(operator.DutyPrune)
	ruled := map[string]TableRule{}
	for _, r := range d.config.Rules {
		source, err := d.config.ruleSource(r, d.pool)
		if err != nil {
			return err
		}
		if fits, err := d.fits(ctx, ruled, r, source); err != nil || !fits {
			if err != nil {
				return err
			}
			continue
		}
		needs, err := r.needsOf(ctx, source)
		if err != nil {
			return err
		}
		needed = append(needed, needs.rights...)
		if err := d.cascades(ctx, r, source); err != nil {
			return err
		}
		if err := d.writtenTo(ctx, "", r.Archive, source); err != nil {
			return err
		}
		if needs.owned == "" {
			continue
		}
		if d.pooled {
			d.find("", Warn, "let the owner run `ordered-dispatcher prune "+visible.Shell(r.Table)+"` with a file that has the rule and a direct connection, and remove the rule from this one",
				"the connection goes through a pooler, and to drop partitions of %s takes a session of its own", needs.owned)
		}
		var role string
		var owns bool
		err = ask(ctx, d.pool, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, ownsSQL, binary, needs.owned).Scan(&role, &owns)
		})
		if err != nil {
			return err
		}
		if !owns {
			d.find("", Warn, "let the owner run `ordered-dispatcher prune "+visible.Shell(r.Table)+"`, with a file that has the rule, and remove the rule from this one",
				"role %s does not own %s, and only an owner can drop its partitions", role, needs.owned)
		}
	}
	if err := d.otherSchemas(ctx); err != nil {
		return err
	}
	return d.missing(ctx, "", needed)
}

// writtenTo warns if a table into which this role writes rows of a source belongs to a stranger; "" is no table.
func (d *doctor) writtenTo(ctx context.Context, process, into string, source *table.Source) error {
	if into == "" {
		return nil
	}
	from, err := source.Name(ctx)
	if err != nil {
		return err
	}
	owned, owner, err := d.config.stranger(ctx, d.pool, into, []string{from})
	if err == nil && owner != "" {
		d.find(process, Warn, "look at its triggers, then give it to the owner of the source: ALTER TABLE "+owned+" OWNER TO …",
			"%s belongs to role %s, which does not own %s: that role can change its rows, and its triggers and defaults run with the rights of the role that writes there",
			visible.Line(owned), quoted(owner), visible.Line(from))
	}
	return err
}

// fits reports whether a rule can be carried out on its table. ruled are the rules that were checked before, by their
// tables.
func (d *doctor) fits(ctx context.Context, ruled map[string]TableRule, r TableRule, source *table.Source) (bool, error) {
	pruning, err := source.Pruning(ctx, r.Keep, nil)
	if err == nil {
		if other, is := ruled[pruning.Table()]; is {
			d.find("", Refuse, "remove one of them from the file", "%v", twoRules(other, r))
			return false, nil
		}
		ruled[pruning.Table()] = r
		err = ask(ctx, d.pool, func(ctx context.Context, tx pgx.Tx) error { return r.Filled().Fits(ctx, tx, pruning) })
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) || waitedForLock(err) {
		return err == nil, err
	}
	problem, fix := err.Error(), "correct the rule in the file, or the table"
	var misfit *table.Misfit
	if errors.As(err, &misfit) {
		problem, fix = misfit.Problem, misfit.Fix
	}
	d.find("", Refuse, fix, "retention of %s: %s", visible.Line(r.Table), problem)
	return false, nil
}

// otherSchemasSQL finds cursors in schemas other than $1. It needs no right to them.
const otherSchemasSQL = `/* doctor.other_schemas */
SELECT n.nspname::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'cursor_pruned' AND obj_description(c.oid, 'pg_class') LIKE 'ordered-dispatcher:%' AND n.nspname <> $1
ORDER BY 1
LIMIT 100`

// otherSchemas names the schemas whose cursors hold no row back.
func (d *doctor) otherSchemas(ctx context.Context) error {
	var all []string
	err := ask(ctx, d.pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, otherSchemasSQL, binary, d.config.schema())
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if len(all) > 0 {
		d.find("", Note, "if a process there reads a table that has a rule here: put its cursor into this schema, or remove the rule",
			"there are cursors in other schemas, too (%s): retention does not see them, and removes rows that they have yet to pass", oneOf(all))
	}
	return err
}

// closedSQL finds partitions, and tables that were some, which retention has closed and not dropped yet. Their comment
// names a table of the same owner, unless that is gone: its forms are those of source.unread. It uses the index of
// pg_constraint on names.
const closedSQL = `/* doctor.closed */
SELECT format('%I.%I', n.nspname, c.relname), obj_description(o.oid, 'pg_constraint')
FROM pg_constraint o
JOIN pg_class c ON c.oid = o.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE o.conname = $1
	AND o.conislocal
	AND obj_description(o.oid, 'pg_constraint') <> ''
	AND NOT EXISTS (
		SELECT FROM pg_class t
		JOIN pg_namespace m ON m.oid = t.relnamespace
		WHERE t.relowner <> c.relowner
			AND obj_description(o.oid, 'pg_constraint') IN (m.nspname || '.' || t.relname, format('"%s"."%s"', replace(m.nspname, '"', '""'), replace(t.relname, '"', '""')))
	)
ORDER BY 1
LIMIT 100`

// closed names what retention has begun to drop, if no rule of this file goes on with it.
func (d *doctor) closed(ctx context.Context) error {
	type part struct{ Name, Of string }
	var all []part
	err := ask(ctx, d.pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, closedSQL, binary, table.Closing)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[part])
		}
		return err
	})
	dropped := d.dropped(ctx)
	for _, p := range all {
		if !slices.Contains(dropped, p.Of) {
			d.find("", Note, fmt.Sprintf("let a rule with mode drop go on with it; or, to keep it: ALTER TABLE %s DROP CONSTRAINT %s, and attach it again if it is detached", p.Name, table.Closing),
				"retention has closed %s, to drop it from %s, and this file has no rule that does: an INSERT into it fails", visible.Line(p.Name), visible.Line(p.Of))
		}
	}
	return err
}

// dropped returns the tables whose partitions the rules of the file drop, with their schemas. A table that is not there
// is named by another check.
func (d *doctor) dropped(ctx context.Context) (all []string) {
	for _, r := range d.config.Rules {
		if r.Filled().Mode != rules.ModeDrop {
			continue
		}
		source, err := d.config.ruleSource(r, d.pool)
		if err != nil {
			continue
		}
		if name, err := source.Name(ctx); err == nil {
			all = append(all, name)
		}
	}
	return all
}
