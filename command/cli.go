package command

import (
	"log/slog"

	"github.com/alecthomas/kong"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
)

const description = `Delivers the rows of PostgreSQL tables to other systems: in order, with none missing.

Exit codes: 0 done, 1 failed (doctor: it found something), 2 wrong use or configuration, 3 a process is halted.
Logs go to stderr: as text on a terminal, as JSON elsewhere.`

// cli is the whole command line, as kong parses it.
type cli struct {
	LogLevel level            `help:"Log at this level and above: debug, info, warn or error." default:"info" placeholder:"LEVEL"`
	Version  kong.VersionFlag `help:"Print the version."`

	Init       initCommand       `cmd:"" help:"Write a configuration for a table of the database, and print what the table lacks. Without a table, list those that there are."`
	Run        runCommand        `cmd:"" help:"Run the processes of a file. Any number of workers may run the same process; one of them delivers."`
	Migrate    migrateCommand    `cmd:"" help:"Create, show or remove the cursor tables. Create or prepare the tables that producers write to."`
	Check      checkCommand      `cmd:"" help:"Check a file without a database."`
	Doctor     doctorCommand     `cmd:"" help:"Check a file against its database, and print each finding with its fix. Exits with 1 on an error or a warning."`
	Prove      proveCommand      `cmd:"" help:"Watch a table, and report which of its rows a simpler reader would have lost, which transactions held rows back, and the latency to expect. Changes nothing."`
	Adopt      adoptCommand      `cmd:"" help:"Find the proven position from which a process may take over from a loop, watermill-sql, Debezium or Sequin. Changes nothing."`
	Grants     grantsCommand     `cmd:"" help:"Print the SQL that lets a role run the processes of a file, and nothing else."`
	Status     statusCommand     `cmd:"" help:"Show the state, position and lag of each process, and what holds it up."`
	Partitions partitionsCommand `cmd:"" help:"Show which partitions are safe to drop or detach, because every process has delivered their records. Exits with 1 if a named partition is not safe."`
	Prune      pruneCommand      `cmd:"" help:"Carry out the rules of retention once: remove rows that every process has passed. Exits with 1 if a process holds rows back."`
	Erase      eraseCommand      `cmd:"" help:"Delete or blank the delivered rows of a key, such as a person's, and note it in the history."`
	Claims     claimsCommand     `cmd:"" help:"Collect the payloads of claim checks that no row needs."`
	Pause      pauseCommand      `cmd:"" help:"Pause a process at its next checkpoint. When the command returns, no delivery is in flight."`
	Resume     resumeCommand     `cmd:"" help:"Resume a paused process."`
	Retry      retryCommand      `cmd:"" set:"expect=Do nothing unless the record at this position fails. --dry-run prints the position." help:"Try the failing record again at once, and count its attempts from one. Also resumes a halted process."`
	Skip       skipCommand       `cmd:"" set:"expect=Do nothing unless the record at this position fails. --dry-run prints the position." help:"Pass over the failing record, and only that one, for good. Also resumes a halted process."`
	Amend      amendCommand      `cmd:"" set:"expect=Do nothing unless the record at this position fails. --dry-run prints the position." help:"Deliver the failing record with another payload. Its row stays as it is. Also resumes a halted process. Needs -c."`
	Seek       seekCommand       `cmd:"" help:"Move the cursor of a process forward or back. Also resumes a halted process. Needs -c."`
	Show       showCommand       `cmd:"" help:"Show where a record is in each process, or print records again that a process has delivered, for a receiver that lacks them. Changes nothing."`
	Tail       tailCommand       `cmd:"" help:"Follow the deliveries of a process, its failures, and what operators decide. Changes nothing."`
	SendTest   sendTestCommand   `cmd:"" help:"Send one marked test through the sink of a process. No record is sent, and the cursor stays where it is."`
	Restored   restoredCommand   `cmd:"" help:"Record that the database was restored from a backup or a snapshot. Processes go on under numbers and keys that were never used."`
	History    historyCommand    `cmd:"" help:"Show what was done to a process, when, by whom and why."`
	Process    processCommand    `cmd:"" help:"Rename or forget the cursor of a process."`
	NotifyTest notifyTestCommand `cmd:"" help:"Send a test message to the targets of notify, and print for each whether it was sent."`
	DeadLetter deadLetterCommand `cmd:"" help:"List, show, replay or discard the records that on_poison: dead_letter put aside."`
	Completion completionCommand `cmd:"" help:"Print a script for your shell that completes commands, flags and names of processes."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print what the last word can become, for the scripts of completion."`
}

// AfterApply makes the logger that the commands get.
func (c *cli) AfterApply(ctx *kong.Context, sys system) error {
	logger := daemon.NewLogger(sys.stderr, slog.Level(c.LogLevel))
	var bar *screen.Bar
	if c.Run.Drain {
		bar = screen.NewBar(sys.stderr, sys.look)
	}
	if bar != nil {
		logger = daemon.NewTextLogger(bar, slog.Level(c.LogLevel))
	}
	daemon.Adopt(logger)
	ctx.Bind(logger, bar)
	return nil
}
