package pgurl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// variables are the variables that name files of the driver, by their settings.
var variables = map[string]string{
	"passfile": "PGPASSFILE", "servicefile": "PGSERVICEFILE", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslrootcert": "PGSSLROOTCERT",
}

// Files returns the paths that the driver reads for a connection string, by the names of their settings: given there,
// in the environment, or by default at home. It does not include the settings of a service.
func Files(connection string) map[string]string {
	all := atHome()
	maps.Copy(all, given(connection))
	maps.DeleteFunc(all, func(setting, path string) bool {
		return path == "" || path == os.DevNull || setting == "sslrootcert" && path == "system"
	})
	return all
}

// FilesByUse returns the Files whose text is a secret, and those whose text decides whom the driver trusts.
func FilesByUse(connection string) (secret, trusted []string) {
	files := Files(connection)
	return []string{files["sslkey"], files["passfile"]}, []string{files["sslcert"], files["sslrootcert"], files["servicefile"]}
}

// CheckFiles refuses a connection string that names a file which the driver would read, or wait for, without an end.
// It quotes no value. The driver reports files that do not exist.
func CheckFiles(connection string) error {
	for setting, path := range Files(connection) {
		_, err := bounded.File(path)
		for _, refused := range []error{bounded.ErrNoFile, bounded.ErrTooLarge} {
			if errors.Is(err, refused) {
				return fmt.Errorf("the file that %s of the connection string names cannot be read (%w): name the right one", setting, refused)
			}
		}
	}
	return nil
}

// MissingFile returns an error if a file that a connection string or a variable names is not there. It explains why the
// driver cannot read the connection string, and quotes no value.
func MissingFile(connection string) error {
	paths := given(connection)
	for _, setting := range slices.Sorted(maps.Keys(paths)) {
		_, err := os.Stat(paths[setting])
		if errors.Is(err, fs.ErrNotExist) && setting != "passfile" && paths[setting] != "" && (setting != "sslrootcert" || paths[setting] != "system") {
			return fmt.Errorf("the file that %s of the connection string names is not there: name the right one", setting)
		}
	}
	return nil
}

// given returns the files that the environment names, or the connection string, which has the last word.
func given(connection string) map[string]string {
	all := map[string]string{}
	for setting, variable := range variables {
		if path := os.Getenv(variable); path != "" {
			all[setting] = path
		}
	}
	maps.Copy(all, named(connection))
	return all
}

func atHome() map[string]string {
	home, err := os.UserHomeDir()
	if err != nil {
		return map[string]string{}
	}
	dir := filepath.Join(home, ".postgresql")
	return map[string]string{
		"passfile": filepath.Join(home, ".pgpass"), "servicefile": filepath.Join(home, ".pg_service.conf"),
		"sslcert": filepath.Join(dir, "postgresql.crt"), "sslkey": filepath.Join(dir, "postgresql.key"), "sslrootcert": filepath.Join(dir, "root.crt"),
	}
}

// word matches a setting in the form key=value, with its value in quotes or without.
var word = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s\\']|\\.)(?:[^\s\\]|\\.)*)?)`)

var escape = regexp.MustCompile(`\\(.)`)

// named returns the files that a connection string itself names.
func named(connection string) map[string]string {
	all := map[string]string{}
	keep := func(name, value string) {
		if _, known := variables[name]; known {
			all[name] = value
		}
	}
	if strings.HasPrefix(connection, "postgres://") || strings.HasPrefix(connection, "postgresql://") {
		_, query, _ := strings.Cut(connection, "?")
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			keep(decoded(name), decoded(value))
		}
		return all
	}
	for _, m := range word.FindAllStringSubmatch(connection, -1) {
		keep(m[1], escape.ReplaceAllString(m[2]+m[3], "$1"))
	}
	return all
}

func decoded(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
