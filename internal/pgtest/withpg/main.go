// Command withpg runs a command with DATABASE_URL set to a throw-away PostgreSQL server that ends with the command:
//
//	go run ./internal/pgtest/withpg go test work
//
// So all test binaries of one run share a server. If DATABASE_URL is set already, that server is used. The exit
// status is the command's. Package pglocal describes which PostgreSQL is used and how to choose another.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpg COMMAND [ARGUMENT...]")
		os.Exit(exitUsage)
	}
	status, err := run(log, os.Args[1:])
	if err != nil {
		log.Error(err.Error())
	}
	os.Exit(status)
}

func run(log *slog.Logger, command []string) (status int, err error) {
	if os.Getenv("DATABASE_URL") != "" {
		pgtest.Announce(log)
		return execute(command)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: pgtest.Settings(), Log: log})
	cancel()
	if err != nil {
		return exitFailed, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if stopErr := server.Stop(ctx); stopErr != nil {
			status, err = max(status, exitFailed), errors.Join(err, stopErr)
		}
	}()
	if err := os.Setenv("DATABASE_URL", server.URL()); err != nil {
		return exitFailed, err
	}
	if err := os.Setenv(pgtest.Announced, "yes"); err != nil {
		return exitFailed, err
	}
	return execute(command)
}

// execute runs the command to its end. Ctrl-C reaches the command from the terminal, and withpg waits until the
// command ends. withpg passes SIGTERM on.
func execute(command []string) (status int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return exitFailed, fmt.Errorf("run %s: %w", command[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			return exitStatus(err)
		}
	}
}

// exitStatus returns the command's exit status. A command that a signal ended has none and counts as failed.
func exitStatus(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	default:
		return exitFailed, err
	}
}
