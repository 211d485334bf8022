package pglocal

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
)

// oldestMajor is the oldest PostgreSQL that this project supports.
const oldestMajor = 14

// Config describes which server to start. The zero value is good.
type Config struct {
	// Version is the major version, "14" or later. Default: PGLOCAL_VERSION; if that is empty too, the highest
	// version on this machine, else the newest that can be fetched.
	Version string

	// Settings go into postgresql.conf, and replace defaults of this package (see defaultSettings). The address and
	// port, the data directory and the sockets cannot be set.
	Settings map[string]string

	// CacheDir keeps fetched programs. If this process runs as root, the user postgres must be able to read it.
	// Default: see the package comment.
	CacheDir string

	// Log gets the programs in use, and a line when some are fetched. Default: log nothing.
	Log *slog.Logger

	major    int  // Version, parsed; 0: any
	embedded bool // PGLOCAL_EMBEDDED
}

// defaultSettings keep a server small and its times readable. All other settings are PostgreSQL's own defaults, above
// all fsync.
var defaultSettings = map[string]string{
	"shared_buffers":            "32MB",
	"max_prepared_transactions": "64",
	"timezone":                  "UTC",
	"log_timezone":              "UTC",
	"listen_addresses":          "127.0.0.1",
	"unix_socket_directories":   "",
}

// ours are the settings on which URL, DataDir and the guard rely.
var ours = []string{"listen_addresses", "port", "unix_socket_directories", "data_directory", "external_pid_file", "logging_collector"}

var settingName = regexp.MustCompile(`^[a-z][a-z0-9_.]*$`)

// withDefaults completes a copy from the environment. It reports every fault at once.
func (c Config) withDefaults() (Config, error) {
	var faults []error
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Version == "" {
		c.Version = os.Getenv("PGLOCAL_VERSION")
	}
	if c.Version != "" {
		major, err := strconv.Atoi(c.Version)
		if err != nil || major < oldestMajor {
			faults = append(faults, fmt.Errorf("version %q: give a major version of PostgreSQL from %d on, such as %q",
				c.Version, oldestMajor, strconv.Itoa(newestFetched())))
		}
		c.major = major
	}
	if text := os.Getenv("PGLOCAL_EMBEDDED"); text != "" {
		embedded, err := strconv.ParseBool(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("PGLOCAL_EMBEDDED=%q: give 1 or 0", text))
		}
		c.embedded = embedded
	}
	faults = append(faults, c.checkSettings())
	settings := maps.Clone(defaultSettings)
	maps.Copy(settings, c.Settings)
	c.Settings = settings
	if err := errors.Join(faults...); err != nil {
		return Config{}, fmt.Errorf("pglocal configuration: %w", err)
	}
	return c, nil
}

func (c Config) checkSettings() error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		switch {
		case !settingName.MatchString(name):
			faults = append(faults, fmt.Errorf("setting %q: not the name of a PostgreSQL setting", name))
		case slices.Contains(ours, name):
			faults = append(faults, fmt.Errorf("setting %q: pglocal chooses this one; leave it out", name))
		}
	}
	return errors.Join(faults...)
}
