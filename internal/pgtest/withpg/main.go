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
	"os/signal"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest/child"
)

const exitUsage = 2

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
		return child.Run(command)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: pgtest.Settings(), Log: log})
	cancel()
	if err != nil {
		return child.Failed, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if stopErr := server.Stop(ctx); stopErr != nil {
			status, err = max(status, child.Failed), errors.Join(err, stopErr)
		}
	}()
	if err := os.Setenv("DATABASE_URL", server.URL()); err != nil {
		return child.Failed, err
	}
	if err := os.Setenv(pgtest.Announced, "yes"); err != nil {
		return child.Failed, err
	}
	return child.Run(command)
}
