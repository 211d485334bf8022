package sql

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

const (
	maxName = 63

	// maxMessage bounds a message of the target: an error, or a row of a statement with RETURNING, which is not read.
	maxMessage = 4 << 20
	// maxRows bounds the answers from catalogs to check, doctor and grants.
	maxRows = 16 << 20

	applicationName = "ordered-dispatcher sink"

	// hostTimeout is how long one of several hosts has to take a connection. If it hangs, the others have the rest of
	// Timeout.
	hostTimeout = 3 * time.Second
)

// String names the target, and hides everything else.
func (c Config) String() string {
	parsed, err := c.parse()
	if err != nil {
		return "an invalid url"
	}
	return target(parsed)
}

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

// target is the part of an address that is not secret. Of several hosts any may be the one that answered.
func target(c *pgx.ConnConfig) string {
	hosts := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if host := fmt.Sprintf("%s:%d", f.Host, f.Port); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return fmt.Sprintf("database %q of %s", c.Database, strings.Join(hosts, " or "))
}

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	return c
}

var errURL = errors.New("url cannot be read: write it as postgres://user:password@host:5432/database, percent-encode what is special in the password, " +
	"and see that the files of sslrootcert, sslcert and sslkey are there")

// validateRemote returns all faults at once, and quotes nothing of the URL.
func (c Config) validateRemote() error {
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	_, err := c.parse()
	fault(c.URL == "", "url is missing: write it as postgres://user:password@host:5432/database")
	fault(c.URL != "" && err != nil, "%w", err)
	fault(len(c.Schema) > maxName, "schema has %d bytes, and PostgreSQL keeps %d of a name", len(c.Schema), maxName)
	_, statements := c.statements()
	return errors.Join(append(faults, statements)...)
}

// parse reads the URL. It ignores the variables that are meant for another server.
func (c Config) parse() (*pgx.ConnConfig, error) {
	parsed, err := pgurl.ParseAlone(c.URL)
	if errors.Is(err, pgurl.ErrUnreadable) {
		return nil, errURL
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	inUTF8(parsed)
	if parsed.RuntimeParams["application_name"] == "" {
		parsed.RuntimeParams["application_name"] = applicationName
	}
	if parsed.ConnectTimeout == 0 {
		parsed.ConnectTimeout = c.Timeout
		if severalHosts(parsed) {
			parsed.ConnectTimeout = min(hostTimeout, c.Timeout/2)
		}
	}
	parsed.MaxProtocolMessageBodyLen = maxMessage       // from the first message on: the driver's own bound is 1 GiB
	parsed.DefaultQueryExecMode = pgx.QueryExecModeExec // with PgBouncer, no prepared statement outlives a transaction
	if severalHosts(parsed) && parsed.ValidateConnect == nil {
		parsed.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return parsed, nil
}

// inUTF8 makes the server convert between its own encoding and UTF-8, which the records use. A setting at the start
// outranks the settings of the role and the database. With those the server would take the bytes for another
// encoding's.
func inUTF8(c *pgx.ConnConfig) {
	const encoding = "client_encoding"
	maps.DeleteFunc(c.RuntimeParams, func(name, _ string) bool { return strings.EqualFold(name, encoding) })
	c.RuntimeParams[encoding] = "UTF8"
}

func severalHosts(c *pgx.ConnConfig) bool {
	for _, fallback := range c.Fallbacks {
		if fallback.Host != c.Host || fallback.Port != c.Port {
			return true
		}
	}
	return false
}
