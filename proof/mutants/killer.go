package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// passOnTheProgram runs the killers on the program as it is: one that fails
// there, or does not exist, would prove nothing.
func passOnTheProgram(ctx context.Context, root string, mutants []mutant) error {
	killers := map[string][]string{}
	for _, m := range mutants {
		killers[m.pkg()] = append(killers[m.pkg()], m.test())
	}
	var errs []error
	for pkg, names := range killers {
		output, err := goTest(ctx, root, "", timeout*time.Duration(len(unique(names))), pkg, names...)
		if err != nil {
			errs = append(errs, fmt.Errorf("a killer fails on the program itself, %s: %w\n%s", pkg, err, output))
			continue
		}
		for _, name := range names {
			if !strings.Contains(output, "--- PASS: "+name+" (") {
				errs = append(errs, fmt.Errorf("there is no test %s in %s", name, pkg))
			}
		}
	}
	return errors.Join(errs...)
}

// die runs the killer on the mutant and returns nil if it fails there.
func (m mutant) die(ctx context.Context, p *program) error {
	dir, err := os.MkdirTemp("", "ordered-dispatcher-mutant-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(p, dir)
	if err != nil {
		return err
	}
	output, err := goTest(ctx, p.root, overlay, timeout, m.pkg(), m.test())
	switch {
	case err == nil:
		return fmt.Errorf("survived: %s: %s passes on it", m.protection, m.killer)
	case !strings.Contains(output, "--- FAIL: "+m.test()+" ("):
		return fmt.Errorf("not killed by %s: %s: %w\n%s", m.killer, m.protection, err, output)
	default:
		return nil
	}
}

// timeout bounds one run of a killer.
const timeout = 150 * time.Second

// goTest runs tests by their names, which may be those of subtests. Programs that
// tests build are built with the same overlay.
func goTest(ctx context.Context, root, overlay string, within time.Duration, pkg string, names ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-v", "-vet=off", "-count=1", fmt.Sprintf("-timeout=%s", within), "-run", anyOf(names), pkg)
	cmd.Dir = root
	cmd.Env = os.Environ()
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

// anyOf is the expression of go test's -run for tests and subtests. It matches
// level by level, so all subtests of a name that is asked for may run as well.
func anyOf(names []string) string {
	var levels [2][]string
	whole := false
	for _, name := range names {
		test, sub, ok := strings.Cut(name, "/")
		levels[0] = append(levels[0], regexp.QuoteMeta(test))
		levels[1] = append(levels[1], regexp.QuoteMeta(sub))
		whole = whole || !ok
	}
	expression := "^(" + strings.Join(unique(levels[0]), "|") + ")$"
	if !whole {
		expression += "/^(" + strings.Join(unique(levels[1]), "|") + ")$"
	}
	return expression
}

func unique(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
