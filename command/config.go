package command

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

// file is the flag of commands that need a configuration.
type file struct {
	Config string `short:"c" required:"" placeholder:"FILE" help:"Configuration file; - is standard input."`
}

// load reads the file. The database is the file's own, or else DATABASE_URL.
func (f file) load(sys system) (daemon.Config, error) {
	config, err := daemon.Load(f.Config, sys.stdin, sys.env, sys.kinds)
	if err != nil {
		return config, err
	}
	return withDatabase(config, sys)
}

func withDatabase(config daemon.Config, sys system) (daemon.Config, error) {
	if config.Database == "" {
		config.Database, _ = sys.env("DATABASE_URL")
	}
	if config.Database == "" {
		return config, &daemon.UsageError{Err: fmt.Errorf("no database is named: set DATABASE_URL, or give database in a file named with -c")}
	}
	if err := pgurl.CheckScheme(config.Database); err != nil {
		return config, &daemon.UsageError{Err: fmt.Errorf("database: %w", err)}
	}
	sys.known.secrets = config.Secrets
	return config, nil
}

// optionalFile holds the flags of commands that need only a database.
type optionalFile struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file; - is standard input. Without a file, DATABASE_URL names the database."`
	Schema string `placeholder:"NAME" help:"Schema of the cursor tables. Default: the file's schema, or public."`
}

func (f optionalFile) load(sys system) (config daemon.Config, err error) {
	if f.Config != "" {
		if config, err = daemon.Load(f.Config, sys.stdin, sys.env, sys.kinds); err != nil {
			return config, err
		}
	}
	if f.Schema != "" {
		config.Schema = f.Schema
	}
	return withDatabase(config, sys)
}
