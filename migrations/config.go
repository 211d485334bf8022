package migrations

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgwall"
)

// Config describes where the tables are.
type Config struct {
	// ConnString is the connection string of the database, as pgx reads it. Required.
	ConnString string
	// Schema is the schema of the tables. Default "public".
	Schema string
	// Waiting is called with the session for which a migration waits, because it uses one of the tables. It is called
	// once for each session. May be nil.
	Waiting func(session string)

	waits waits // zero: defaultWaits. Tests set it
}

// waits bounds the waits before a migration begins. The migration itself has no bound.
type waits struct {
	connect time.Duration // unless connect_timeout sets another
	answer  time.Duration // to the questions before it, or of Status
	lock    time.Duration // for another migration, and in all for tables that workers use
}

var defaultWaits = waits{connect: 10 * time.Second, answer: 30 * time.Second, lock: 60 * time.Second}

// lockMargin is how long the server has to report the end of its wait for a lock.
const lockMargin = 5 * time.Second

// keepAlive detects within about ten seconds that the server's host is gone, even while a migration takes long.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

const (
	defaultSchema = "public"
	maxNameBytes  = 63       // PostgreSQL keeps so much of a name
	maxRows       = 16 << 20 // bytes of rows in one answer

	versionTable    = "ordered_dispatcher_migration"
	applicationName = "ordered-dispatcher migrate"
)

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.waits == (waits{}) {
		c.waits = defaultWaits
	}
	return c
}

// searchPath makes the schema the place where objects are created. PostgreSQL's own names still come first, since
// pg_catalog is not named; a temporary table comes last.
func searchPath(schema string) string { return pgx.Identifier{schema}.Sanitize() + ", pg_temp" }

// table returns the name of the version table, quoted.
func (c Config) table() string { return pgx.Identifier{c.Schema, versionTable}.Sanitize() }

func (c Config) validate() error {
	if len(c.Schema) > maxNameBytes {
		return fmt.Errorf("schema %q has more than the %d bytes that PostgreSQL keeps of a name", c.Schema, maxNameBytes)
	}
	return nil
}

// connConfig returns the configuration of the one session. The settings are sent with the start of the session, so
// that they cannot outlive it.
func (c Config) connConfig() (*pgx.ConnConfig, error) {
	if err := pgurl.CheckScheme(c.ConnString); err != nil {
		return nil, err
	}
	if err := pgurl.CheckFiles(c.ConnString); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(c.ConnString)
	if err != nil {
		// Its text may contain parts of a password.
		return nil, cmp.Or(pgurl.MissingFile(c.ConnString), errors.New("the connection string cannot be read: write it as postgres://user:password@host/database, "+
			"and percent-encode what is special in a password"))
	}
	for name := range config.RuntimeParams {
		// Only a pool understands these settings; the server would refuse them.
		if strings.HasPrefix(name, "pool_") {
			delete(config.RuntimeParams, name)
		}
	}
	if err := pgurl.CheckPasswords(c.ConnString, config); err != nil {
		return nil, err
	}
	if err := pgurl.CheckParameters(config.RuntimeParams); err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = c.waits.connect
	}
	config.DialFunc = (&net.Dialer{Timeout: config.ConnectTimeout, KeepAliveConfig: keepAlive}).DialContext
	pgwall.Bound(&config.Config, maxRows)
	config.RuntimeParams["search_path"] = searchPath(c.Schema)
	config.RuntimeParams["application_name"] = applicationName
	config.RuntimeParams["timezone"] = "UTC" // the times of the version table have no zone
	return config, nil
}
