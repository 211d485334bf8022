// Package pgurl checks the settings in the connection strings of a configuration: those of the cursor's database, of
// migrate and of the sql sink.
package pgurl

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/closest"
)

// parameters are the settings that a connection string may have besides those that the driver knows. A misspelt name
// would be sent to any server that answers, together with a password.
var parameters = []string{
	"application_name", "client_encoding", "datestyle", "default_transaction_isolation", "default_transaction_read_only",
	"extra_float_digits", "idle_in_transaction_session_timeout", "intervalstyle", "jit", "lock_timeout", "options", "role", "search_path",
	"statement_timeout", "synchronous_commit", "timezone", "transaction_timeout", "work_mem",
}

// known are settings of the driver, for what a misspelt one was meant to be.
var known = []string{
	"host", "hostaddr", "port", "user", "password", "passfile", "dbname", "database", "service", "servicefile", "connect_timeout", "sslmode", "sslcert", "sslkey",
	"sslrootcert", "sslpassword", "target_session_attrs", "pool_max_conns", "pool_min_conns", "pool_max_conn_lifetime",
}

// CheckParameters refuses settings that neither the driver nor this list knows. It quotes no value, and of the names only
// those that resemble a known one: another may be a part of a password that is not encoded, or a URL with a slip in its
// beginning, which the driver takes for a setting.
func CheckParameters(given map[string]string) error {
	for name := range given {
		if !slices.Contains(parameters, strings.ToLower(name)) {
			if !plainName.MatchString(name) {
				return errors.New("the connection string cannot be read: " + HowToConnect)
			}
			meant := closest.Name(name, append(known, parameters...))
			if meant == "" {
				return errors.New("the connection string has a setting that the driver does not know and may not send to the server: " +
					"set it with ALTER ROLE, or " + HowToConnect)
			}
			return fmt.Errorf("the connection string has a setting %q, which the driver does not know: did you mean %s?", name, meant)
		}
	}
	return nil
}

// plainName matches the names of settings: https://www.postgresql.org/docs/current/config-setting.html.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// Lowered returns settings under the names by which the server compares them. If one setting has two spellings, the
// driver would send both, in any order.
func Lowered(given map[string]string) map[string]string {
	all := make(map[string]string, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		all[strings.ToLower(name)] = given[name]
	}
	return all
}
