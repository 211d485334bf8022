package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/judge"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := o.do(ctx, log, stdout); err != nil {
		log.Error(err.Error())
		return exitFailed
	}
	return 0
}

// options are what the flags say.
type options struct {
	seed   uint64
	length time.Duration
	short  bool
	race   bool
	keep   bool
	judge  string
	only   string // a part of the campaign
	faults string // of the cell
}

// shipped is the program that is put under faults.
const shipped = "github.com/ordered-dispatcher/ordered-dispatcher/cmd/ordered-dispatcher"

// The parts of a campaign.
const (
	fieldPart = "field"
	cellPart  = "cell"
)

// What -short runs.
const (
	fixedSeed   = 53 // whose short run has every kind of fault
	shortLength = 40 * time.Second
)

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Uint64Var(&o.seed, "seed", rand.Uint64N(1e9), "`SEED` of the schedule; default: another one each time")
	flags.DurationVar(&o.length, "for", time.Minute, "how long faults are inflicted")
	flags.BoolVar(&o.short, "short", false, fmt.Sprintf("run seed %d for %v, as CI does", fixedSeed, shortLength))
	flags.BoolVar(&o.race, "race", false, "build the daemons with the race detector, which needs a C compiler")
	flags.BoolVar(&o.keep, "keep", false, "keep the histories even if every promise was kept")
	flags.StringVar(&o.judge, "judge", "", "judge the histories that were kept in `DIR`, and run nothing")
	flags.StringVar(&o.only, "only", "", "run the `PART` field or cell alone: the one whose database loses nothing, or the one whose servers are replaced")
	flags.StringVar(&o.faults, "faults", "", "inflict these `NAMES` on the cell, with commas between; default: all")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var fault string
	_, err := chosenFaults(o.faults)
	switch {
	case err != nil:
		fault = err.Error()
	case flags.NArg() > 0:
		fault = fmt.Sprintf("%q: torture takes flags only", flags.Arg(0))
	case o.length < 10*time.Second || o.length > 24*time.Hour:
		fault = fmt.Sprintf("-for %v: choose 10s to 24h", o.length)
	case o.only != "" && o.only != fieldPart && o.only != cellPart:
		fault = fmt.Sprintf("-only %s: choose %s or %s", o.only, fieldPart, cellPart)
	default:
		return o, nil
	}
	fmt.Fprintln(stderr, fault)
	return o, errors.New(fault)
}

func (o options) do(ctx context.Context, log *slog.Logger, stdout io.Writer) error {
	if o.judge != "" {
		return pronounce(o.judge, stdout)
	}
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "ordered-dispatcher")
	defer os.Remove(dir)
	defer os.Remove(program)
	if err := o.build(ctx, program); err != nil {
		return err
	}
	if o.short {
		o.seed, o.length = fixedSeed, shortLength
	}
	if err := o.campaign(ctx, dir, program, log, stdout); err != nil {
		return fmt.Errorf("%w\nreplay it with: %s", err, o.command())
	}
	return nil
}

// command replays a run.
func (o options) command() string {
	race := ""
	if o.race {
		race = " -race"
	}
	more := ""
	if o.only != "" {
		more = " -only " + o.only
	}
	if o.faults != "" {
		more += " -faults " + o.faults
	}
	return fmt.Sprintf("go run ./proof/torture -seed %d -for %v%s%s", o.seed, o.length, race, more)
}

func (o options) build(ctx context.Context, program string) error {
	args := []string{"build", "-o", program}
	if o.race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, shipped)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return nil
}

// campaign runs a seed and judges it. The histories of a bad run are kept.
func (o options) campaign(ctx context.Context, dir, program string, log *slog.Logger, stdout io.Writer) error {
	histories := filepath.Join(dir, fmt.Sprint("seed-", o.seed))
	if err := os.Mkdir(histories, 0o755); err != nil {
		return err
	}
	c := campaign{seed: o.seed, length: o.length, program: program, histories: histories, log: log, faults: o.faults}
	err := c.runParts(ctx, o.only)
	if err == nil {
		err = pronounce(histories, stdout)
	}
	if err != nil {
		return fmt.Errorf("%w\nthe histories are in %s", err, histories)
	}
	if o.keep {
		log.Info("histories kept", "in", histories)
		return nil
	}
	return os.RemoveAll(histories)
}

// pronounce judges the histories of a directory; a bad verdict is an error.
func pronounce(histories string, stdout io.Writer) error {
	h, err := history.Read(histories)
	if err != nil {
		return err
	}
	v := judge.Judge(h)
	report(stdout, h.Setting, v)
	if !v.Good() {
		return fmt.Errorf("the verdict is bad: %d invariants broken", broken(v))
	}
	return nil
}
