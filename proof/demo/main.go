package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// main is the demo, and also the workers that the demo starts: the program that ships, as `run -c FILE`.
func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		command.Main(webhook.Spec())
	}
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	config, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	config.Output = stdout
	if err := Run(ctx, config); err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return exitFailed
	}
	return 0
}

// parse reads the command line. The environment may name a database that people work with, so DATABASE_URL does not
// choose the server.
func parse(args []string, stderr io.Writer) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.DatabaseURL, "database", "", "make the demo's tables on the server at `URL`, in a schema that is removed afterwards;\n"+
		"default: a throw-away server. Other users of this machine can see a password in URL: use PGPASSWORD for it")
	flags.DurationVar(&c.Duration, "duration", 15*time.Second, "how long bookings are made; the worker is killed in the middle of it")
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("demo takes options only, got %q", flags.Arg(0))
		fmt.Fprintln(stderr, err)
		return Config{}, err
	}
	return c, nil
}
