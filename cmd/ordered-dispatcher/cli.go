package main

import (
	"log/slog"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
)

const description = `Delivers the rows of PostgreSQL tables to other systems: in order, with none missing.

Exit codes: 0 done, 1 failed (doctor: something found), 2 wrong use or configuration, 3 a process is halted.
Logs go to stderr: for people on a terminal, as JSON elsewhere.`

// cli is the command line.
type cli struct {
	LogLevel slog.Level       `help:"Least level to log: debug, info, warn or error." default:"info" placeholder:"LEVEL"`
	Version  kong.VersionFlag `help:"Print the version."`

	Run     runCommand     `cmd:"" help:"Run the processes of a file: any number of workers may run the same one, and one of them works."`
	Migrate migrateCommand `cmd:"" help:"Make, show or remove the tables that hold the cursors."`
	Check   checkCommand   `cmd:"" help:"Check a file alone, without a database."`
	Doctor  doctorCommand  `cmd:"" help:"Check a file against its database: each finding with its cure. Exits with 1 if something is to refuse or to warn of."`
	Status  statusCommand  `cmd:"" help:"Show how processes stand: state, position, lag, and what holds them back."`
	Demo    demoCommand    `cmd:"" help:"Show the main job on a throw-away PostgreSQL: producers, two workers, a crash and a verdict."`
}

// AfterApply makes the logger that commands are given.
func (c *cli) AfterApply(ctx *kong.Context, sys system) error {
	ctx.Bind(daemon.NewLogger(sys.stderr, c.LogLevel))
	return nil
}

// version is the module's, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
