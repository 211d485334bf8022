package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Where a command finds its configuration if -c does not name it.
const (
	configVariable = "ORDERED_DISPATCHER_CONFIG"
	configFile     = "dispatcher.yaml" // in the current directory
)

// source is the flag -c.
type source struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file; - is standard input. Default: what ORDERED_DISPATCHER_CONFIG names, or dispatcher.yaml in this directory."`
}

// path returns the file that a command reads, and "" if there is none. from says what named it, for messages; it is
// empty for the flag.
func (s source) path(sys system) (path, from string) {
	if s.Config != "" {
		return s.Config, ""
	}
	if path, _ := sys.look(configVariable); path != "" {
		return path, configVariable + " names "
	}
	if _, err := os.Stat(configFile); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return configFile, ""
	}
	return "", ""
}

// looked describes where path looked in vain.
func looked() string {
	where := "this directory"
	if dir, err := os.Getwd(); err == nil {
		where = visible.Inline(dir)
	}
	return fmt.Sprintf(". The environment has no %s, and %s has no %s", configVariable, where, configFile)
}

// read reads the file, if there is one. It returns its path.
func (s source) read(sys system) (config daemon.Config, path string, err error) {
	path, from := s.path(sys)
	if path == "" {
		return config, "", nil
	}
	config, err = daemon.Load(path, sys.stdin, sys.env, sys.kinds)
	var usage *daemon.UsageError
	if from != "" && errors.As(err, &usage) {
		err = &daemon.UsageError{Err: fmt.Errorf("%s%s: %w", from, visible.Inline(path), usage.Err)}
	}
	return config, path, err
}

// file is the flag of commands that need a configuration.
type file struct{ source }

// read reads the file. It returns its path.
func (f file) read(sys system) (daemon.Config, string, error) {
	config, path, err := f.source.read(sys)
	if err == nil && path == "" {
		err = &daemon.UsageError{Err: fmt.Errorf("no configuration: name it with -c FILE%s", looked())}
	}
	return config, path, err
}

// load reads the file. The database is the file's own, or else DATABASE_URL.
func (f file) load(sys system) (daemon.Config, error) {
	config, _, err := f.read(sys)
	if err != nil {
		return config, err
	}
	return withDatabase(config, sys)
}

func withDatabase(config daemon.Config, sys system) (daemon.Config, error) {
	if config.Database == "" {
		config.Database, _ = sys.look("DATABASE_URL")
	}
	if config.Database == "" {
		return config, &daemon.UsageError{Err: errors.New("no database is named: set DATABASE_URL, or give database in a file named with -c")}
	}
	if err := pgurl.CheckScheme(config.Database); err != nil {
		return config, &daemon.UsageError{Err: fmt.Errorf("database: %w", err)}
	}
	sys.known.secrets = config.Secrets
	return config, nil
}

// optionalFile holds the flags of commands that need only a database.
type optionalFile struct {
	source
	Schema string `placeholder:"NAME" help:"Schema of the cursor tables. Default: the file's schema, or public."`
}

// load reads the file, if there is one. Without one, DATABASE_URL names the database.
func (f optionalFile) load(sys system) (daemon.Config, error) {
	config, path, err := f.read(sys)
	if err != nil {
		return config, err
	}
	if f.Schema != "" {
		config.Schema = f.Schema
	}
	config, err = withDatabase(config, sys)
	if err != nil && path == "" && config.Database == "" {
		err = &daemon.UsageError{Err: fmt.Errorf("no database is named: set DATABASE_URL, or give database in a file named with -c%s", looked())}
	}
	return config, err
}
