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

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

// RemoteConfig describes a Remote. Zero values mean defaults.
type RemoteConfig struct {
	// URL of the target, or its key=value form, with TLS by its own parameters
	// (sslmode, sslrootcert, sslcert, sslkey). Of several hosts the one that can be
	// written to is taken, unless target_session_attrs says otherwise. It names the
	// user. PGPASSWORD, its like and service files do not count; a password may be in
	// the file ~/.pgpass, the same for all hosts. Required.
	URL string
	// Statement is that of Config. Tables are looked up in the search_path of the
	// target's role, so qualify them. Required.
	Statement string
	// RequireRow is that of Config. It costs one more round trip to the target for each
	// transaction.
	RequireRow bool
	// Secrets are those within Statement. See Config.
	Secrets []string
	// Schema of the Remote's own tables in the target: see Remote.Tables. Default
	// "public".
	Schema string
	// HideAnswers keeps what the server says out of errors. The password and Secrets
	// are kept out anyway.
	HideAnswers bool
	// Timeout bounds making a connection, and each statement, the wait for a lock
	// included; the server ends it. One of several hosts has 3 s of it to take a
	// connection, unless connect_timeout says otherwise. Default 30 s, at least 1 ms,
	// at most 1 h.
	Timeout time.Duration
}

const (
	defaultSchema  = "public"
	defaultTimeout = 30 * time.Second
	minTimeout     = time.Millisecond
	maxTimeout     = time.Hour
	maxName        = 63

	// maxMessage bounds a message of the target: an error, or a row of a statement with
	// RETURNING, which is not read.
	maxMessage = 4 << 20
	// maxRows bounds what check, doctor and grants are answered of catalogs.
	maxRows = 16 << 20

	applicationName = "ordered-dispatcher sink"

	// hostTimeout is what one of several hosts has to take a connection: one that hangs
	// leaves the others the rest of Timeout.
	hostTimeout = 3 * time.Second
)

// String names the target, and hides everything else.
func (c RemoteConfig) String() string {
	parsed, err := c.parse()
	if err != nil {
		return "an invalid url"
	}
	return target(parsed)
}

// GoString is String, for the verb %#v.
func (c RemoteConfig) GoString() string { return c.String() }

// target is the part of an address that is no secret. Of several hosts any may be the one that answered.
func target(c *pgx.ConnConfig) string {
	hosts := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if host := fmt.Sprintf("%s:%d", f.Host, f.Port); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return fmt.Sprintf("database %q of %s", c.Database, strings.Join(hosts, " or "))
}

func (c RemoteConfig) withDefaults() RemoteConfig {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

var errURL = errors.New("url cannot be read: write it as postgres://user:password@host:5432/database, percent-encode what is special in the password, " +
	"and see that the files of sslrootcert, sslcert and sslkey are there")

// validate returns every fault at once, and quotes nothing of the URL.
func (c RemoteConfig) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	_, err := c.parse()
	fault(c.URL == "", "url is missing: write it as postgres://user:password@host:5432/database")
	fault(c.URL != "" && err != nil, "%w", err)
	fault(len(c.Schema) > maxName, "schema has %d bytes, and PostgreSQL keeps %d of a name", len(c.Schema), maxName)
	fault(c.Timeout < minTimeout || c.Timeout > maxTimeout, "timeout %v is not within %v and %v", c.Timeout, minTimeout, maxTimeout)
	return errors.Join(errors.Join(faults...), Config{Statement: c.Statement}.validate())
}

// parse reads the URL, and nothing of the variables that are meant for another server.
func (c RemoteConfig) parse() (*pgx.ConnConfig, error) {
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
	parsed.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing prepared outlives a transaction behind PgBouncer
	if severalHosts(parsed) && parsed.ValidateConnect == nil {
		parsed.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return parsed, nil
}

// inUTF8 has the server convert between its own encoding and UTF-8, which the records
// are in. Setting it at the start outranks the settings of the role and the database,
// which would have the server take the bytes for another encoding's.
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
