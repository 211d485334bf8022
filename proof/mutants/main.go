package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"syscall"
)

func main() {
	pattern := flag.String("run", "", "mutants whose name or killer this regular `expression` matches; default: all")
	ci := flag.Bool("ci", false, "of these, those that CI runs")
	parallel := flag.Int("parallel", 2, "how many `mutants` to run at a time")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *pattern, among(*ci), *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run has every killer pass on the program and fail on its mutant, and prints the
// table of those that did.
func run(ctx context.Context, pattern string, mutants []mutant, parallel int) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	mutants = slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool {
		return !wanted.MatchString(m.protection) && !wanted.MatchString(m.killer)
	})
	if len(mutants) == 0 {
		return fmt.Errorf("no mutant and no killer matches %q", pattern)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := passOnTheProgram(ctx, root, mutants); err != nil {
		return err
	}
	p := newProgram(root)
	err = each(parallel, mutants, func(m mutant) error {
		err := m.die(ctx, p)
		if err == nil {
			fmt.Fprintf(os.Stderr, "killed: %s\n", m.protection)
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Print(markdown(mutants))
	return nil
}

// each calls f for every mutant, so many at a time, and returns all errors.
func each(parallel int, mutants []mutant, f func(mutant) error) error {
	errs := make([]error, len(mutants))
	turns := make(chan struct{}, max(1, parallel))
	var group sync.WaitGroup
	for i, m := range mutants {
		turns <- struct{}{}
		group.Go(func() {
			errs[i] = f(m)
			<-turns
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
