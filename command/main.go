package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
)

// Main runs the program with sinks of these kinds, and with directories as its only object stores: see Program.Main.
func Main(kinds ...sinks.Spec) { Program{Sinks: kinds}.Main() }

// Program is the program with the parts that it was built with.
type Program struct {
	// Sinks are the kinds of sinks that a configuration may have.
	Sinks []sinks.Spec
	// Stores are the kinds of object stores that it may have, besides directories.
	Stores []stores.Spec
}

// Main runs the program with the arguments of this process and ends the process with the exit code of the command. It
// never returns. Main also changes how the operating system treats the
// process: there is no core dump that could show a secret, and no child inherits an open file.
func (p Program) Main() {
	if err := daemon.Undumpable(); err != nil {
		fmt.Fprintln(os.Stderr, "ordered-dispatcher:", err) // a sandbox may forbid it; the program works without
	}
	if err := daemon.CloseOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "ordered-dispatcher:", err)
	}
	os.Exit(execute(os.Args[1:], system{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv, exit: os.Exit, kinds: daemon.Kinds(p)}))
}

// system is the surroundings that commands can use.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	exit           func(int)
	known          *known
	kinds          daemon.Kinds
}

// known holds the secrets that the command must not print: a server repeats the login.
type known struct{ secrets func() secret.Set }

// out and err are where people read. What programs read goes to stdout and stderr itself.
func (s system) out() screen.Page { return screen.NewPage(s.stdout, s.look) }
func (s system) err() screen.Page { return screen.NewPage(s.stderr, s.look) }

// look looks up a variable of the environment.
func (s system) look(name string) (string, bool) {
	if s.env == nil {
		return "", false
	}
	return s.env(name)
}

func execute(args []string, sys system) int {
	sys.known = &known{secrets: func() secret.Set { return secret.Set{} }}
	parser, err := kong.New(&cli{},
		kong.Name("ordered-dispatcher"),
		kong.Description(description),
		defaults(),
		kong.Writers(sys.stdout, sys.stderr),
		kong.Exit(sys.exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: screen.DefaultWidth}),
		kong.Help(help),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
		kong.Bind(sys),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), duration),
	)
	if err != nil {
		return report(sys, err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return wrong(parser, args, sys, err)
	}
	err = command.Run()
	err = sys.known.secrets().Error(err) // including those that were renewed meanwhile
	if err != nil && command.Command() == "run" && !visible.IsTerminal(sys.stderr) {
		daemon.NewLogger(sys.stderr, slog.LevelError).Error("ended", "err", err) // every line of the log stays JSON, the last one too
		return daemon.ExitCode(err)
	}
	return report(sys, err)
}

// report prints an error and returns its exit code.
func report(sys system, err error) int {
	if err != nil {
		fmt.Fprintln(sys.err(), "ordered-dispatcher:", visible.Indented(err.Error()))
	}
	return daemon.ExitCode(err)
}
