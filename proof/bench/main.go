package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
)

const (
	exitFailed = 1
	exitUsage  = 2

	stopTimeout = time.Minute
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if task, ok := childTask(os.Args[1:]); ok {
		os.Exit(runChild(ctx, task, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	options, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := onServer(ctx, log, func(address string) error { return measure(ctx, address, options, log, stdout) }); err != nil {
		log.Error(err.Error())
		return exitFailed
	}
	return 0
}

// options are what the flags say.
type options struct {
	only    string
	scale   float64
	seconds int
	args    []string // as given, to print the command
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{args: args}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.only, "only", "", "one `NAME` of "+strings.Join(names(), ", "))
	flags.Float64Var(&o.scale, "scale", 1, "`FACTOR` by which records and times are multiplied; only 1 is comparable with the documentation")
	flags.IntVar(&o.seconds, "seconds", 600, "for how many `SECONDS` -only retention inserts, once with a rule and once without")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var fault string
	switch {
	case flags.NArg() > 0:
		fault = fmt.Sprintf("%q: bench takes flags only", flags.Arg(0))
	case o.only != "" && len(selected(o.only)) == 0:
		fault = fmt.Sprintf("-only %q: choose one of %s", o.only, strings.Join(names(), ", "))
	case !(o.scale > 0 && o.scale <= 10):
		fault = fmt.Sprintf("-scale %v: choose more than 0 and at most 10", o.scale)
	case o.seconds < 20 || o.seconds > 36_000:
		fault = fmt.Sprintf("-seconds %d: choose at least 20 and at most 36000", o.seconds)
	default:
		return o, nil
	}
	fmt.Fprintln(stderr, fault)
	return o, errors.New(fault)
}

// serverSettings are PostgreSQL's own defaults, but for room: the small cache of pglocal would make the disk a part of
// every ratio, and a checkpoint would fall into some rounds only.
var serverSettings = map[string]string{
	"fsync":              "on",
	"shared_buffers":     "512MB",
	"max_wal_size":       "16GB",
	"checkpoint_timeout": "1h",
}

// onServer calls f with the address of a server that lasts until f returns.
func onServer(ctx context.Context, log *slog.Logger, f func(address string) error) (err error) {
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: serverSettings, Log: log})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, server.Stop(ctx))
	}()
	return f(server.URL())
}

// measure makes the measurements that were asked for, in an empty database, and prints their table.
func measure(ctx context.Context, address string, o options, log *slog.Logger, stdout io.Writer) error {
	b, err := newBench(ctx, address, o.scale, log)
	if err != nil {
		return err
	}
	defer b.pool.Close()
	b.seconds = o.seconds
	machine, err := b.machine(ctx, o)
	if err != nil {
		return err
	}
	var rows []row
	for _, m := range selected(o.only) {
		began := time.Now()
		more, err := m.rows(ctx, b)
		if err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		rows = append(rows, more...)
		log.Info("measured "+m.name, "took", time.Since(began).Round(time.Second))
	}
	return report(stdout, machine, rows)
}

// measurement is what -only names.
type measurement struct {
	name string
	rows func(context.Context, *bench) ([]row, error)
}

// measurements are all there are, in the order of the table.
func measurements() []measurement {
	return []measurement{
		{"batch", measureBatch},
		{"each", measureEach},
		{"webhook", measureWebhook},
		{"rabbitmq", measureRabbitMQ},
		{"kafka", measureKafka},
		{"nats", measureNATS},
		{"latency", measureLatency},
		{"switch", measureSwitch},
		{"tail", measureTail},
		{"memory", measureMemory},
	}
}

// named are those that only -only runs, since they take long.
func named() []measurement { return []measurement{{"retention", measureRetention}} }

func selected(only string) []measurement {
	var result []measurement
	for _, m := range named() {
		if only == m.name {
			return []measurement{m}
		}
	}
	for _, m := range measurements() {
		if only == "" || only == m.name {
			result = append(result, m)
		}
	}
	return result
}

func names() []string {
	var result []string
	for _, m := range append(measurements(), named()...) {
		result = append(result, m.name)
	}
	return result
}
