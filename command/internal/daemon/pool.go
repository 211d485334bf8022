package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgwall"
)

const (
	applicationName = "ordered-dispatcher"

	// A process holds one connection for its lease and one for reading. Two more serve the questions of metrics, of
	// health and of the guard of the partitions; each asks one at a time.
	connsPerProcess = 2
	spareConns      = 2
)

// connsFor returns how many connections that many processes need.
func connsFor(processes int) int32 { return int32(processes*connsPerProcess + spareConns) }

// enoughConns refuses a pool in which processes would wait for each other's connections.
func enoughConns(allowed int32, processes int) error {
	if need := connsFor(processes); allowed < need {
		return fmt.Errorf("pool_max_conns in the connection string allows %d connections, and %d processes need %d: remove it, or raise it to %[3]d",
			allowed, processes, need)
	}
	return nil
}

// poolConfig reads a connection string for that many processes. Its errors show no part of the string.
func poolConfig(database string, processes int) (*pgxpool.Config, error) {
	if err := pgurl.CheckScheme(database); err != nil {
		return nil, err
	}
	if err := pgurl.CheckFiles(database); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, unreadable(database, err)
	}
	if !given(database, "pool_max_conns", "") {
		config.MaxConns = connsFor(processes)
	}
	c := config.ConnConfig
	if err := pgurl.CheckPasswords(database, c); err != nil {
		return nil, err
	}
	if err := pgurl.CheckParameters(c.RuntimeParams); err != nil {
		return nil, err
	}
	// Nothing is prepared, so PgBouncer in transaction mode may be in between.
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.RuntimeParams = pgurl.Lowered(c.RuntimeParams)
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = applicationName
	}
	if c.RuntimeParams["client_encoding"] == "" { // a role or a database may have another one
		c.RuntimeParams["client_encoding"] = "UTF8"
	}
	switch {
	case c.ConnectTimeout != 0:
	case severalHosts(c):
		c.ConnectTimeout = hostTimeout
	default:
		c.ConnectTimeout = connectTimeout
	}
	timed(&c.Config)
	pgwall.Bound(&c.Config, 0) // the source bounds the size of a record
	if severalHosts(c) && !given(database, "target_session_attrs", "PGTARGETSESSIONATTRS") {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config, nil
}

// given reports whether a connection string, or the environment, has a setting.
func given(database, setting, variable string) bool {
	return strings.Contains(database, setting) || variable != "" && os.Getenv(variable) != ""
}

func severalHosts(c *pgx.ConnConfig) bool {
	for _, fallback := range c.Fallbacks {
		if fallback.Host != c.Host || fallback.Port != c.Port {
			return true
		}
	}
	return false
}

// unreadable explains a connection string that cannot be read. It shows the driver's message only if that repeats
// nothing of the string: pieces of it may be pieces of a password with special characters.
func unreadable(database string, err error) error {
	cause := errors.Unwrap(err)
	if _, urlErr := url.Parse(database); urlErr != nil || cause == nil {
		return errors.New("the connection string cannot be read: " + pgurl.HowToConnect)
	}
	text := quotation.ReplaceAllString(cause.Error(), "…")
	if repeats(text, database) {
		return errors.New("the connection string cannot be read: " + pgurl.HowToConnect)
	}
	return fmt.Errorf("the connection string cannot be read (%s): %s", text, pgurl.HowToConnect)
}

// quotation matches the text that the driver, and other libraries, put between quotes.
var quotation = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

var word = regexp.MustCompile(`[\pL\pN_]+`)

// repeats reports whether a text contains a word of a connection string, other than the name of the setting that is
// most often wrong.
func repeats(text, database string) bool {
	decoded, err := url.QueryUnescape(database)
	if err != nil {
		decoded = database
	}
	return slices.ContainsFunc(word.FindAllString(text, -1), func(word string) bool {
		return word != "sslmode" && (strings.Contains(database, word) || strings.Contains(decoded, word))
	})
}

// openPool returns a pool that connects when it is first needed, so that the program also starts while the database
// is down.
func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	var pool *pgxpool.Pool
	askIdle(config, func() *pgxpool.Pool { return pool })
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the connection pool: %w", err)
	}
	return pool, nil
}
