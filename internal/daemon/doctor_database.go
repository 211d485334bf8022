package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

const oldestServer = 14

const serverSQL = `/* doctor.server */
SELECT
	current_setting('server_version_num')::int / 10000,
	pg_is_in_recovery(),
	current_setting('transaction_read_only')::boolean,
	(SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user),
	current_user::text`

// server checks that this is one to work on.
func (d *doctor) server(ctx context.Context) error {
	var major int
	var standby, readOnly, super bool
	var role string
	if err := d.pool.QueryRow(ctx, serverSQL).Scan(&major, &standby, &readOnly, &super, &role); err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	switch {
	case standby:
		d.find("", Refuse, "connect to the primary, for example with several hosts and target_session_attrs=read-write",
			"the server is a standby, where no cursor can be advanced")
	case readOnly:
		d.find("", Refuse, fmt.Sprintf("ALTER ROLE %s SET default_transaction_read_only = off", quoted(role)),
			"the sessions of role %s are read-only, so no cursor can be advanced", role)
	}
	if major < oldestServer {
		d.find("", Refuse, fmt.Sprintf("upgrade the server to PostgreSQL %d or later", oldestServer), "the server is PostgreSQL %d, older than %d", major, oldestServer)
	}
	if super {
		d.find("", Note, "use a role with no more than the grants it needs", "role %s is a superuser", role)
	}
	return nil
}

const schemaSQL = `/* doctor.schema */
SELECT
	(SELECT has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = $1),
	current_user::text`

const tablesSQL = `/* doctor.tables */
SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL`

// tables checks that the migrations are applied, and that the role may see it.
func (d *doctor) tables(ctx context.Context) error {
	d.tableless = true
	var usable *bool // nil: there is no such schema
	var role string
	if err := d.pool.QueryRow(ctx, schemaSQL, d.config.schema()).Scan(&usable, &role); err != nil {
		return fmt.Errorf("look for the schema of the cursor tables: %w", err)
	}
	if usable != nil && !*usable {
		d.find("", Refuse, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", quoted(d.config.schema()), quoted(role)),
			"role %s may not use schema %q", role, d.config.schema())
		return nil
	}
	var present bool
	if err := d.pool.QueryRow(ctx, tablesSQL, d.name("cursor"), d.name("cursor_event")).Scan(&present); err != nil {
		return fmt.Errorf("look for the cursor tables: %w", err)
	}
	if !present {
		d.find("", Refuse, migrateUp, "the cursor tables are missing in schema %q", d.config.schema())
		return nil
	}
	d.tableless = false
	return d.migrated(ctx)
}

const migrateUp = "ordered-dispatcher migrate up"

func (d *doctor) migrated(ctx context.Context) error {
	all, err := migrations.Status(ctx, migrations.Config{ConnString: d.config.Database, Schema: d.config.Schema})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return nil // only the migrating role needs to read its versions
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
		d.find("", Refuse, migrateUp, "migrations are not applied: %s", strings.Join(pending, ", "))
	case len(applied) == 0:
		d.find("", Note, "", "the tables were made by another tool than `migrate up`, so their version is not known")
	}
	return nil
}

const grantsSQL = `/* doctor.grants */
SELECT
	current_user::text,
	array(SELECT p FROM unnest(array['SELECT', 'INSERT', 'UPDATE']) p WHERE NOT has_table_privilege($1, p)),
	array(SELECT p FROM unnest(array['SELECT', 'INSERT']) p WHERE NOT has_table_privilege($2, p))`

// grants checks what the role may do with the cursor tables.
func (d *doctor) grants(ctx context.Context) error {
	if d.tableless {
		return nil
	}
	var role string
	var missing [2][]string
	err := d.pool.QueryRow(ctx, grantsSQL, d.name("cursor"), d.name("cursor_event")).Scan(&role, &missing[0], &missing[1])
	if err != nil {
		return fmt.Errorf("look up the grants on the cursor tables: %w", err)
	}
	for i, name := range []string{"cursor", "cursor_event"} {
		if rights := strings.Join(missing[i], ", "); rights != "" {
			d.find("", Refuse, fmt.Sprintf("GRANT %s ON %s TO %s", rights, d.name(name), quoted(role)),
				"role %s lacks %s on %s", role, rights, name)
		}
	}
	return nil
}

const connectionsSQL = `/* doctor.connections */
SELECT
	current_setting('max_connections')::int
		- current_setting('superuser_reserved_connections')::int
		- coalesce(current_setting('reserved_connections', true)::int, 0),
	(SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
	(SELECT rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = current_user),
	(SELECT datconnlimit FROM pg_catalog.pg_database WHERE datname = current_database()),
	current_user::text,
	current_database()::text`

// connections checks that there are enough of them.
func (d *doctor) connections(ctx context.Context) error {
	var usable, used, roleLimit, databaseLimit int32
	var role, database string
	err := d.pool.QueryRow(ctx, connectionsSQL).Scan(&usable, &used, &roleLimit, &databaseLimit, &role, &database)
	if err != nil {
		return fmt.Errorf("look up the limits on connections: %w", err)
	}
	need, allowed := connsFor(len(d.config.Processes)), d.pool.Config().MaxConns
	if allowed < need {
		d.find("", Warn, fmt.Sprintf("remove pool_max_conns, or raise it to %d", need),
			"%d processes need %d connections, and pool_max_conns allows %d", len(d.config.Processes), need, allowed)
	}
	short := func(cure, what string, limit int32) {
		d.find("", Warn, cure, "each worker opens up to %d connections, and %s %d", allowed, what, limit)
	}
	switch {
	case roleLimit >= 0 && roleLimit < allowed:
		short(fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d, times the number of workers", quoted(role), allowed), "the role's limit is", roleLimit)
	case databaseLimit >= 0 && databaseLimit < allowed:
		short(fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d, times the number of workers", quoted(database), allowed), "the database's limit is", databaseLimit)
	case usable-used < allowed:
		short("raise max_connections, or put a pooler in between", "the server has room for", max(0, usable-used))
	}
	return nil
}

// transport warns of a connection that may be in the clear over a network.
func (d *doctor) transport() {
	c := d.pool.Config().ConnConfig
	hosts := []*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}
	for _, h := range append(hosts, c.Fallbacks...) {
		if h.TLSConfig == nil && !isLocal(h.Host) {
			d.find("", Warn, "set sslmode=verify-full and sslrootcert in the connection string",
				"the connection to %s may be unencrypted, and whoever stands between could see and change the records", h.Host)
			return
		}
	}
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || ip != nil && ip.IsLoopback()
}

// name is a table of the schema, quoted.
func (d *doctor) name(table string) string {
	return pgx.Identifier{d.config.schema(), table}.Sanitize()
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
