package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// cursorTables has the store compare the database with the needs of leases, and checks which migrations are applied.
func (d *doctor) cursorTables(ctx context.Context) error {
	found, err := operator.New(d.store).Doctor(ctx, d.config.workerDuties()...)
	for _, f := range found.Findings {
		f.Fix = d.config.withFile(f.Fix)
		d.findings = append(d.findings, Finding(f))
	}
	d.tableless = !found.Usable
	if err != nil || !found.Present {
		return err
	}
	return d.migrated(ctx)
}

const migrateUp = "ordered-dispatcher migrate up -c FILE"

// withFile puts the name of the file into a command: with -c, a command finds its database and its schema.
func (c Config) withFile(command string) string {
	if c.file == "" {
		return command
	}
	return strings.ReplaceAll(command, "-c FILE", "-c "+visible.Shell(c.file))
}

func (d *doctor) migrated(ctx context.Context) error {
	all, err := migrations.Status(ctx, migrations.Config{ConnString: d.config.Database, Schema: d.config.Schema})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return nil // only the migrating role needs to read the versions
	}
	if err != nil {
		return err
	}
	var applied, pending, newer []string
	for _, m := range all {
		switch {
		case m.Name == "":
			newer = append(newer, fmt.Sprint(m.Version))
		case m.AppliedAt.IsZero():
			pending = append(pending, m.Name)
		default:
			applied = append(applied, m.Name)
		}
	}
	switch {
	case len(newer) > 0:
		d.find("", Warn, "use a newer ordered-dispatcher", "the tables are newer than this program (migration %s)", strings.Join(newer, ", "))
	case len(pending) > 0 && len(applied) > 0:
		d.find("", Refuse, d.config.withFile(migrateUp), "migrations are not applied: %s", strings.Join(pending, ", "))
	case len(applied) == 0:
		d.find("", Note, "", "the tables were made by another tool than `migrate up`, so doctor cannot find out their version")
	}
	return nil
}

const roleSQL = `/* doctor.role */ SELECT current_user::pg_catalog.text`

// missing finds the privileges that the role lacks.
func (d *doctor) missing(ctx context.Context, process string, needed []privilege.Privilege) error {
	var lacking []privilege.Privilege
	var role string
	err := onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		if lacking, err = privilege.Missing(ctx, conn, needed); err != nil || len(lacking) == 0 {
			return err
		}
		return conn.QueryRow(ctx, roleSQL).Scan(&role)
	})
	if err != nil {
		return fmt.Errorf("ask what the role may do: %w", err)
	}
	for _, p := range lacking {
		d.find(process, Refuse, privilege.Grant(role, p), "role %s lacks %s on %s", role, p, p.Name)
	}
	return nil
}

// connections checks that there are enough connections.
func (d *doctor) connections(ctx context.Context) error {
	limits, err := d.config.capacity(ctx, d.pool)
	if err != nil {
		return err
	}
	least, need, allowed := connsFor(len(d.config.Processes)), d.config.poolConns(), d.pool.Config().MaxConns
	fix := fmt.Sprintf("remove pool_max_conns, or raise it to %d", need)
	switch {
	case allowed < least:
		d.find("", Refuse, fix, "%d processes need %d connections, and pool_max_conns allows %d", len(d.config.Processes), need, allowed)
	case allowed < need:
		d.find("", Warn, fix, "%d processes, with listen_token and notify, need %d connections, and pool_max_conns allows %d: they will wait for each other",
			len(d.config.Processes), need, allowed)
	}
	if d.pooled {
		return nil // the pooler has limits of its own, and does not show them
	}
	needed := d.config.connections(d.pool)
	console := d.config.consoleConns()
	opens := needed + console
	worker := fmt.Sprintf("each worker opens up to %d connections", opens)
	if console > 0 {
		worker += fmt.Sprintf(" (%d of them for the console)", console)
	}
	for _, l := range limits {
		switch {
		case l.allowed < needed: // without room for its console, a worker starts
			d.find("", Refuse, l.repair(opens), "%s, and %s is %d", worker, l.name, l.allowed)
			return nil
		case l.lacks(opens) > 0:
			d.find("", Warn, l.repair(opens), "%s, and %s is %d, of which %d are in use", worker, l.name, l.allowed, l.used)
			return nil
		}
	}
	return nil
}

// transport warns of a connection that may cross a network without encryption, and of one that may end at any of
// several servers.
func (d *doctor) transport() {
	c := d.pool.Config().ConnConfig
	if severalHosts(c) && c.ValidateConnect == nil {
		d.find("", Warn, "set target_session_attrs=read-write in the connection string",
			"the connection string names several hosts and takes the first that answers, a standby too, where no cursor can be advanced")
	}
	d.encrypted("", c)
	for _, e := range d.config.exposed() {
		d.find("", Warn, e.fix, "%s", e.problem)
	}
	for _, e := range d.config.exposures(c) {
		if e.process != "" {
			d.find(e.process, Warn, e.fix, "%s", e.problem)
		}
	}
}

// encrypted warns of a connection that may cross a network without encryption, and of one that may end at a
// stranger's server.
func (d *doctor) encrypted(process string, c *pgx.ConnConfig) {
	const fix = "set sslmode=verify-full and sslrootcert in the connection string"
	if host := plaintext.Postgres(c); host != "" {
		d.find(process, Warn, fix, "the connection to %s may be unencrypted, so anyone on the way can read and change the records", host)
	} else if host := plaintext.Unverified(c); host != "" {
		d.find(process, Warn, fix, "the certificate of %s is not checked (sslmode=require), so anyone on the way can take its place and the password", host)
	}
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

const backendSQL = `/* doctor.backend */ SELECT pg_catalog.pg_backend_pid()`

// pooler finds out whether a pooler is between us and the server, and whether it lets transactions through. A pooler
// greets with a process id of its own.
func (d *doctor) pooler(ctx context.Context) error {
	return onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		if pooled, err := pooled(ctx, conn); err != nil || !pooled {
			return err
		}
		d.pooled = true
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		})
		if err != nil {
			d.find("", Refuse, "set pool_mode = transaction, or connect to the server directly", "the pooler in between does not let a transaction through: %v", err)
			return nil
		}
		d.find("", Note, "", "the connection goes through a pooler: it must hold %d server connections for each worker, and let a transaction be idle for as long as a sink call takes; "+
			"migrate needs a connection without it", d.config.poolConns()+d.config.consoleConns())
		return nil
	})
}
