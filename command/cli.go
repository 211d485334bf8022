package command

import (
	"log/slog"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

const description = `Delivers the rows of PostgreSQL tables to other systems: in order, with none missing.

Exit codes: 0 done, 1 failed (doctor: something found), 2 wrong use or configuration, 3 a process is halted.
Logs go to stderr: for people on a terminal, as JSON elsewhere.`

// cli is the command line.
type cli struct {
	LogLevel level            `help:"Least level to log: debug, info, warn or error." default:"info" placeholder:"LEVEL"`
	Version  kong.VersionFlag `help:"Print the version."`

	Run        runCommand        `cmd:"" help:"Run the processes of a file: any number of workers may run the same one, and one of them works."`
	Migrate    migrateCommand    `cmd:"" help:"Make, show or remove the tables that hold the cursors."`
	Check      checkCommand      `cmd:"" help:"Check a file alone, without a database."`
	Doctor     doctorCommand     `cmd:"" help:"Check a file against its database: each finding with its fix. Exits with 1 if something is to refuse or to warn of."`
	Grants     grantsCommand     `cmd:"" help:"Print the SQL that lets a role run the processes of a file, and nothing else."`
	Status     statusCommand     `cmd:"" help:"Show how processes stand: state, position, lag, and what holds them back."`
	Partitions partitionsCommand `cmd:"" help:"Show which partitions are safe to drop or to detach: every process has delivered what they hold. Exits with 1 if one that is named is not."`
	Pause      pauseCommand      `cmd:"" help:"Stop a process at its next checkpoint. When this returns, nothing is being delivered."`
	Resume     resumeCommand     `cmd:"" help:"Set a paused process running."`
	Retry      retryCommand      `cmd:"" help:"Try the failing record again at once, with its attempts counted anew. Sets a halted process running."`
	Skip       skipCommand       `cmd:"" help:"Pass over the failing record, that one alone, for good. Sets a halted process running."`
	Seek       seekCommand       `cmd:"" help:"Move the cursor of a process, forward or back. Sets a halted process running. Needs -c."`
	Restored   restoredCommand   `cmd:"" help:"Say that the database was restored from a backup or a snapshot: processes go on under numbers and keys that were not used before."`
	History    historyCommand    `cmd:"" help:"Show what was done to a process, when, by whom and why."`
	Process    processCommand    `cmd:"" help:"Rename or forget the cursor of a process."`
	DeadLetter deadLetterCommand `cmd:"" help:"List, show, replay or discard what the policy dead_letter put aside."`
}

// AfterApply makes the logger that commands are given.
func (c *cli) AfterApply(ctx *kong.Context, sys system) error {
	logger := daemon.NewLogger(sys.stderr, slog.Level(c.LogLevel))
	daemon.Adopt(logger)
	ctx.Bind(logger)
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
