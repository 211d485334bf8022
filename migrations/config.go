package migrations

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Config says where the tables are.
type Config struct {
	// ConnString of the database, as pgx reads it. Required.
	ConnString string
	// Schema of the tables. Default "public".
	Schema string
}

const (
	defaultSchema = "public"
	maxNameBytes  = 63 // what PostgreSQL keeps of a name

	versionTable    = "ordered_dispatcher_migration"
	applicationName = "ordered-dispatcher migrate"

	// lockTimeout bounds the wait for another migration, and for a table that
	// a worker uses.
	lockTimeout = "60s"
)

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	return c
}

// searchPath makes the schema the place of what is created. PostgreSQL's own names come first all the same, since
// pg_catalog is not named; a temporary table comes last.
func searchPath(schema string) string { return pgx.Identifier{schema}.Sanitize() + ", pg_temp" }

func (c Config) validate() error {
	if len(c.Schema) > maxNameBytes {
		return fmt.Errorf("schema %q has more than the %d bytes that PostgreSQL keeps of a name", c.Schema, maxNameBytes)
	}
	return nil
}

// connConfig is that of the one session. Settings are sent with the start of the
// session, so that they cannot outlive it.
func (c Config) connConfig() (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(c.ConnString)
	if err != nil {
		// Its text may hold parts of a password.
		return nil, errors.New("the connection string cannot be read: write it as postgres://user:password@host/database, " +
			"and percent-encode what is special in a password")
	}
	for name := range config.RuntimeParams {
		// What only a pool understands, and the server would refuse.
		if strings.HasPrefix(name, "pool_") {
			delete(config.RuntimeParams, name)
		}
	}
	config.RuntimeParams["search_path"] = searchPath(c.Schema)
	config.RuntimeParams["application_name"] = applicationName
	config.RuntimeParams["timezone"] = "UTC" // the version table's times have no zone
	return config, nil
}
