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
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// GrantsConfig names the roles for which grants are printed.
type GrantsConfig struct {
	// Config must have its Database, which must hold the tables.
	Config Config
	// Role is the role that runs the processes, spelled as in the catalog. Required.
	Role string
	// Operator is a role for people who decide; "" if Role does that as well.
	Operator string
}

// Grants writes the SQL that lets one role run the processes and do nothing else, and another one decide about them.
// Comments explain the need of each part. Grants changes nothing, and the role need not exist yet. If something could
// not be found out, a comment names it, and Grants returns it as the error.
func Grants(ctx context.Context, w io.Writer, c GrantsConfig) error {
	pool, store, err := c.Config.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	g := &grants{GrantsConfig: c, pool: pool, store: store, granted: map[string]bool{}}
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, databaseSQL).Scan(&g.database, &g.standbys)
	})
	if err != nil {
		return Reachable(fmt.Errorf("ask for the database's name: %w", err))
	}
	for _, p := range c.Config.Processes {
		g.process(ctx, p)
	}
	g.workers()
	g.rules(ctx)
	g.erasing(ctx)
	if c.Operator != "" {
		g.operators()
	}
	if _, err := io.WriteString(w, visible.Text(strings.TrimLeft(g.text.String(), "\n"))); err != nil {
		return err
	}
	return errors.Join(g.faults...)
}

// grantsFix is the next step if a right is missing.
const grantsFix = "run, as the owner, what `ordered-dispatcher grants` prints for the role"

// workerDuties returns the duties of a role that runs the processes, once they have their cursors.
func (c Config) workerDuties() []operator.Duty {
	duties := []operator.Duty{operator.DutyDeliver, operator.DutyCount}
	if slices.ContainsFunc(c.Processes, func(p Process) bool { return p.DeadLetter }) {
		duties = append(duties, operator.DutyPutAside)
	}
	if c.ListenToken != "" {
		duties = append(duties, operator.DutyShow)
	}
	if c.Admin.decides() {
		duties = append(duties, operator.DutyDecide, operator.DutyReplay)
	}
	return duties
}

// name returns a table of the schema, quoted.
func (c Config) name(table string) string { return pgx.Identifier{c.schema(), table}.Sanitize() }

// grants collects the needed privileges, and writes the text.
type grants struct {
	GrantsConfig
	pool     *pgxpool.Pool
	store    *cursor.Store
	database string
	standbys bool // the server has synchronous standbys
	text     strings.Builder
	needed   []need          // by the role that runs the processes
	looked   []need          // by operators, who need keys only
	granted  map[string]bool // the commands that the text already has
	stats    []string        // processes that read a table stamped with the start of a transaction
	hints    []string        // comments
	faults   []error
}

// need is a privilege that a process needs.
type need struct {
	process string
	privilege.Privilege
}

const databaseSQL = `/* grants.database */
SELECT
	pg_catalog.current_database()::pg_catalog.text,
	pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.<>) ''`

// workers writes the needs of the role that runs the processes.
func (g *grants) workers() {
	role := quoted(g.Role)
	g.comment("What role %s needs to run these processes, and nothing else. Run it as the owner of what is named.\n"+
		"A new role: CREATE ROLE %s LOGIN PASSWORD '…';", role, role)
	g.grant(g.Role, privilege.Privilege{On: privilege.Database, Name: quoted(g.database), Right: "CONNECT"})
	g.comment("The cursors and their audit.")
	g.grant(g.Role, operator.New(g.store).Needs(g.Config.workerDuties()...)...)
	g.comment("To make the cursor of a process at its first start: may be revoked when each has its own. Or the owner makes them:\n"+
		"INSERT INTO %s (process_name, position) VALUES ('a process', ''); -- '' is before the first record", g.Config.name("cursor"))
	g.grant(g.Role, operator.New(g.store).Needs(operator.DutyCreate)...)
	if g.Config.ListenToken == "" {
		g.comment("If role %s is to show records again (`ordered-dispatcher show`), it also needs this:\n%s", role, operator.New(g.store).Grants(g.Role, operator.DutyShow))
	}
	if len(g.needed) > 0 {
		g.comment("What the processes read and write.")
		g.objects(g.Role, g.needed)
	}
	g.seesAll(g.Role)
	for _, hint := range g.hints {
		g.comment("%s", hint)
	}
}

// operators writes the needs of the role that decides about them.
func (g *grants) operators() {
	role := quoted(g.Operator)
	g.comment("What role %s needs for status, history, pause, resume, retry, skip, seek, process and dead-letter, and nothing else.\n"+
		"dead-letter replay delivers, so it also needs what %s has, and this, which lets the role read what records hold:\n%s"+
		"show prints what records hold, so it is for %[2]s.",
		role, quoted(g.Role), operator.New(g.store).Grants(g.Operator, operator.DutyReplay))
	g.grant(g.Operator, privilege.Privilege{On: privilege.Database, Name: quoted(g.database), Right: "CONNECT"})
	g.grant(g.Operator, operator.New(g.store).Needs(operator.DutyDecide)...)
	if len(g.looked) > 0 {
		g.comment("To see what comes after a cursor: for the lag, seek, and what a --dry-run lists. That takes positions and ids%s", g.Config.shownToOperators())
		g.objects(g.Operator, g.looked)
	}
	g.seesAll(g.Operator)
}

// shownToOperators describes how much of the records an operator can see with these rights.
func (c Config) shownToOperators() string {
	if slices.ContainsFunc(c.Processes, func(p Process) bool { return p.Source.Where != "" }) {
		return ", and the columns\nthat source.where names: the role can read these of every record, and nothing else of what records hold."
	}
	return ", and nothing of what records hold."
}

// seesAll grants what the fence needs for a column that defaults to the start of a transaction. If only the advice of
// status needs the right, seesAll names it and does not grant it, because it shows the statements of all sessions.
func (g *grants) seesAll(role string) {
	if len(g.stats) == 0 {
		if g.standbys {
			g.comment("synchronous_standby_names is set. Without the following right, status, doctor and the log cannot see whether a session of another role is a\n"+
				"COMMIT that waits for a standby, and then say so. It shows the statements of all sessions, so decide whether to grant it:\n"+
				"GRANT pg_read_all_stats TO %s;", visible.SQL(quoted(role)))
		}
		return
	}
	g.comment("To see when the transactions of all sessions began, which is the fence of an order column that defaults to now(): without it these\n" +
		"processes are refused. For a superuser, or a role with ADMIN OPTION. Better is the default that doctor names, which needs no such right.")
	g.line("GRANT pg_read_all_stats TO %s; %s", visible.SQL(quoted(role)), visible.Comment(strings.Join(g.stats, ", ")))
}

// process collects the needs of one process.
func (g *grants) process(ctx context.Context, p Process) {
	source, err := g.Config.source(p, g.pool, nil)
	if err != nil {
		g.unknown(p, err)
		return
	}
	needs, err := source.Needs(ctx)
	g.needed = append(g.needed, g.needs(p, needs.Needs, err)...)
	if needs.Stats {
		g.stats = append(g.stats, p.Name)
	}
	if keys, keysErr := g.Config.keys(p, g.pool); err == nil && keysErr == nil && g.Operator != "" {
		needs, err := keys.Needs(ctx)
		g.looked = append(g.looked, g.needs(p, needs.Needs, err)...)
	}
	if sink, ok := p.Sink.Config.(recorder); ok && g.Operator != "" {
		g.looked = append(g.looked, g.needs(p, privilege.Needs{Privileges: shadow.CompareNeeds(sink.table)}, nil)...)
	}
	if sink, ok := p.Sink.Config.(sinks.Privileged); ok {
		needs, err := sink.Needs(ctx, g.pool)
		g.needed = append(g.needed, g.needs(p, needs, err)...)
	}
	if sink, ok := p.Sink.Config.(sinks.PrivilegedElsewhere); ok {
		text, err := sink.NeedsElsewhere(ctx)
		if err != nil {
			g.unknown(p, err)
		}
		if text != "" {
			g.hint("%s", text)
		}
	}
}

// needs returns the needs that were found out about a process.
func (g *grants) needs(p Process, needs privilege.Needs, err error) (all []need) {
	if err != nil {
		g.unknown(p, err)
		return nil
	}
	for _, privilege := range needs.Privileges {
		all = append(all, need{p.Name, privilege})
	}
	if len(needs.BlindSpots) > 0 {
		g.hint("Not checked, so add what they need: %s of process %s.", strings.Join(needs.BlindSpots, ", "), p.Name)
	}
	return all
}

// unknown notes that the needs of a process could not be found out.
func (g *grants) unknown(p Process, err error) {
	err = g.Config.Secrets().Error(fmt.Errorf("process %q: %w", p.Name, err))
	g.faults = append(g.faults, err)
	g.hint("MISSING HERE: %v", err)
}

// hint adds a comment after the grants, once.
func (g *grants) hint(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(g.hints, text) {
		g.hints = append(g.hints, text)
	}
}

// objects grants the needs of processes, object by object, and names the processes that need each object.
func (g *grants) objects(role string, needed []need) {
	var all []privilege.Privilege
	for _, n := range needed {
		all = append(all, n.Privilege)
	}
	for _, on := range privilege.ByObject(all) {
		if command := privilege.Grant(role, on...); g.once(command) {
			g.line("%s; %s", command, visible.Comment(strings.Join(users(needed, on[0]), ", ")))
		}
	}
}

// users returns the processes that need an object.
func users(needed []need, on privilege.Privilege) []string {
	var names []string
	for _, n := range needed {
		if n.Same(on) && !slices.Contains(names, n.process) {
			names = append(names, n.process)
		}
	}
	return names
}

// comment begins a section.
func (g *grants) comment(format string, args ...any) {
	g.line("\n%s", visible.Comment(fmt.Sprintf(format, args...)))
}

func (g *grants) line(format string, args ...any) { fmt.Fprintf(&g.text, format+"\n", args...) }

// once reports whether a command is new. The schema of the cursors may also be the schema of a source.
func (g *grants) once(command string) bool {
	if g.granted[command] {
		return false
	}
	g.granted[command] = true
	return true
}

func (g *grants) grant(role string, privileges ...privilege.Privilege) {
	for _, on := range privilege.ByObject(privileges) {
		if command := privilege.Grant(role, on...); g.once(command) {
			g.line("%s;", command)
		}
	}
}
