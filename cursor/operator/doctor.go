package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Finding is a fact that works against the promises.
type Finding struct {
	// Process is the process that has it; "" for all.
	Process  string
	Severity cursor.Severity
	// Problem is what is wrong, in one sentence.
	Problem string
	// Fix is what to do: SQL, a command or a change of the configuration.
	Fix string
}

// Diagnosis is what Doctor found.
type Diagnosis struct {
	Findings []Finding
	// Present reports that the tables exist, Usable that the role may also do its duties on them.
	Present, Usable bool
}

// Doctor compares the database with what leases and the duties of a role need, and changes nothing. It examines
// the server, the tables, the rights to them, and the settings that the role's sessions begin with. Sources and
// sinks have checks of their own (table.Source.Inspect, sql.Sink.Check), and Lockers finds who has locked a
// cursor. The error joins those of the checks that could not be made; Doctor returns the findings of the others
// with it.
func (o *Operator) Doctor(ctx context.Context, duties ...Duty) (Diagnosis, error) {
	d := diagnosis{op: o}
	err := o.db.OnConnection(ctx, func(conn *pgxpool.Conn) error {
		d.conn = conn
		return answer.Within(ctx, tables.CommitTimeout, func(ctx context.Context) error {
			return errors.Join(d.server(ctx), d.tables(ctx), d.owners(ctx), d.triggers(ctx), d.unlogged(ctx), d.rights(ctx, duties), d.sessions(ctx))
		})
	})
	if err != nil {
		err = o.db.WithFix("examine the database", err)
	}
	return d.Diagnosis, err
}

// diagnosis is a Diagnosis in the making.
type diagnosis struct {
	Diagnosis
	op   *Operator
	conn *pgxpool.Conn
}

func (d *diagnosis) find(severity cursor.Severity, fix, problem string, args ...any) {
	d.Findings = append(d.Findings, Finding{"", severity, visible.Inline(fmt.Sprintf(problem, args...)), visible.SQL(fix)})
}

const migrateUp = "ordered-dispatcher migrate up -c FILE"

const roleSQL = `/* doctor.role */ SELECT current_user::pg_catalog.text`

// rights checks what the role may do with the tables.
func (d *diagnosis) rights(ctx context.Context, duties []Duty) error {
	if !d.Present {
		return nil
	}
	necessary := slices.DeleteFunc(slices.Clone(duties), func(duty Duty) bool { return duty == DutyCount })
	lacking, err := privilege.Missing(ctx, d.conn, d.op.Needs(necessary...))
	if err != nil {
		return err
	}
	var role string
	if err := d.conn.QueryRow(ctx, roleSQL).Scan(&role); err != nil {
		return fmt.Errorf("ask for the role: %w", err)
	}
	for _, p := range lacking {
		d.find(cursor.Refuse, privilege.Grant(role, p), "role %s lacks %s on %s", role, p, p.Name)
	}
	d.Usable = len(lacking) == 0
	if lacking, err = privilege.Missing(ctx, d.conn, controlFile); err != nil {
		return err
	}
	for _, p := range lacking {
		d.find(cursor.Refuse, privilege.Grant(role, p), "role %s lacks %s on %s, which every role has unless a superuser has revoked it: a superuser can grant it, and the owner cannot", role, p, p.Name)
	}
	d.Usable = d.Usable && len(lacking) == 0
	if len(necessary) < len(duties) {
		return d.counting(ctx, role)
	}
	return nil
}

// controlFile are the functions that identitySQL and startSQL call.
var controlFile = []privilege.Privilege{
	{On: privilege.Function, Name: "pg_catalog.pg_control_system()", Right: "EXECUTE"},
	{On: privilege.Function, Name: "pg_catalog.pg_control_checkpoint()", Right: "EXECUTE"},
}

// counting checks that the role sees how many dead letters are open.
func (d *diagnosis) counting(ctx context.Context, role string) error {
	lacking, err := privilege.Missing(ctx, d.conn, d.op.Needs(DutyCount))
	for _, p := range lacking {
		d.find(cursor.Warn, privilege.Grant(role, p), "role %s lacks %s on %s: status and metrics do not show its open dead letters", role, p, p.Name)
	}
	return err
}

const oldestServer = 14

const serverSQL = `/* doctor.server */
SELECT
	pg_catalog.current_setting('server_version_num')::int OPERATOR(pg_catalog./) 10000,
	pg_catalog.pg_is_in_recovery(),
	pg_catalog.current_setting('transaction_read_only')::boolean,
	(SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) current_user),
	current_user::pg_catalog.text`

// server checks that workers can work on this server.
func (d *diagnosis) server(ctx context.Context) error {
	var major int
	var standby, readOnly, super bool
	var role string
	if err := d.conn.QueryRow(ctx, serverSQL).Scan(&major, &standby, &readOnly, &super, &role); err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	switch {
	case standby:
		d.find(cursor.Refuse, "connect to the primary, for example with several hosts and target_session_attrs=read-write",
			"the server is a standby, where no cursor can be advanced")
	case readOnly:
		d.find(cursor.Refuse, fmt.Sprintf("ALTER ROLE %s SET default_transaction_read_only = off", pgx.Identifier{role}.Sanitize()),
			"the sessions of role %s are read-only, so no cursor can be advanced", role)
	}
	if major < oldestServer {
		d.find(cursor.Refuse, fmt.Sprintf("upgrade the server to PostgreSQL %d or later", oldestServer), "the server is PostgreSQL %d, older than %d", major, oldestServer)
	}
	if super {
		d.find(cursor.Note, "use a role of its own: `ordered-dispatcher grants -c FILE --role NAME` prints what it needs", "role %s is a superuser", role)
	}
	return nil
}

const schemaSQL = `/* doctor.schema */
SELECT
	(SELECT pg_catalog.has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) $1),
	current_user::pg_catalog.text`

const tablesSQL = `/* doctor.tables */
SELECT array(SELECT name FROM pg_catalog.unnest($1::pg_catalog.text[]) name WHERE pg_catalog.to_regclass(name) IS NULL)`

// tables checks that the tables exist, and that the role may look into their schema.
func (d *diagnosis) tables(ctx context.Context) error {
	var usable *bool // nil: there is no such schema
	var role string
	if err := d.conn.QueryRow(ctx, schemaSQL, d.op.config.Schema).Scan(&usable, &role); err != nil {
		return fmt.Errorf("look for the schema of the cursor tables: %w", err)
	}
	if usable != nil && !*usable {
		d.find(cursor.Refuse, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", d.op.db.Schema, pgx.Identifier{role}.Sanitize()),
			"role %s may not use schema %q", role, d.op.config.Schema)
		return nil
	}
	var absent []string
	all := []string{d.op.db.Schema + ".cursor", d.op.db.Schema + ".cursor_event", d.op.db.Schema + ".dead_letter", d.op.db.Schema + ".cursor_past", d.op.db.Schema + ".cursor_pruned", d.op.db.Schema + ".cursor_amended"}
	if err := d.conn.QueryRow(ctx, tablesSQL, all).Scan(&absent); err != nil {
		return fmt.Errorf("look for the cursor tables: %w", err)
	}
	switch len(absent) {
	case 0:
	case len(all):
		d.find(cursor.Refuse, migrateUp, "the cursor tables are missing in schema %q: if another one has them, as after ALTER SCHEMA … RENAME, name that one instead", d.op.config.Schema)
		return nil
	default:
		d.find(cursor.Refuse, migrateUp, "of the cursor tables these are missing: %s", strings.Join(absent, ", "))
		return nil
	}
	d.Present = true
	return nil
}

const sessionsSQL = `/* doctor.sessions */
SELECT
	session_user::pg_catalog.text,
	pg_catalog.current_database()::pg_catalog.text,
	coalesce(pg_catalog.current_setting('transaction_timeout', true), '0'),
	(SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'statement_timeout'),
	pg_catalog.current_setting('server_encoding'),
	pg_catalog.current_setting('synchronous_commit'),
	(SELECT source FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'synchronous_commit')`

// sessionSettings are the settings of a role or a database that a lease does not set for itself.
type sessionSettings struct {
	Role, Database     string
	TransactionTimeout string // as PostgreSQL prints it; 0 = none, or older than 17
	StatementTimeout   int64  // ms; 0 = none
	Encoding           string
	SynchronousCommit  string
	CommitSource       string // where it was set
}

// shortStatements is less than a look at the cursor may take on a busy server.
const shortStatements = time.Second

// sessions checks the settings that the role's sessions begin with.
func (d *diagnosis) sessions(ctx context.Context) error {
	rows, err := d.conn.Query(ctx, sessionsSQL)
	if err != nil {
		return err
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[sessionSettings])
	if err != nil {
		return fmt.Errorf("look up the settings of the role's sessions: %w", err)
	}
	role := pgx.Identifier{s.Role}.Sanitize()
	if s.TransactionTimeout != "0" {
		d.find(cursor.Warn, fmt.Sprintf("ALTER ROLE %s SET transaction_timeout = 0", role),
			"transactions of role %s end after %s (transaction_timeout), those of a lease too: a delivery under it is cut short, and its record sent again", s.Role, s.TransactionTimeout)
	}
	if timeout := time.Duration(s.StatementTimeout) * time.Millisecond; timeout > 0 && timeout < shortStatements {
		d.find(cursor.Warn, fmt.Sprintf("ALTER ROLE %s SET statement_timeout = '30s'", role),
			"statements of role %s end after %s (statement_timeout), which a look at the cursor may take on a busy server", s.Role, timeout)
	}
	if fix := s.commitFix(); fix != "" {
		d.find(cursor.Warn, fix, "synchronous_commit is off for all of the database: a crash of the server takes the last commits of applications back. Workers deliver no record before the disk has it")
	}
	if s.Encoding == "SQL_ASCII" {
		d.find(cursor.Note, "", "the encoding of database %s is SQL_ASCII: its texts may hold any bytes, and receivers get them as they are", s.Database)
	}
	return nil
}

// commitFix is the next step if the sessions of other programs, too, commit without waiting. Leases themselves
// set what they need.
func (s sessionSettings) commitFix() string {
	switch {
	case s.SynchronousCommit != "off":
		return ""
	case s.CommitSource == "database":
		return fmt.Sprintf("ALTER DATABASE %s SET synchronous_commit = on", pgx.Identifier{s.Database}.Sanitize())
	case s.CommitSource == "configuration file" || s.CommitSource == "command line":
		return "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf()"
	default:
		return ""
	}
}
