package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// childArgument, before the name of a task, makes this program a child. It is no flag: nobody is meant to use it.
const childArgument = "child"

const (
	taskReceive = "receive"
	taskDrain   = "drain"
)

// childTask returns the task if the program was started as a child.
func childTask(args []string) (task string, ok bool) {
	if len(args) != 2 || args[0] != childArgument {
		return "", false
	}
	return args[1], true
}

// runChild returns the exit status.
func runChild(ctx context.Context, task string, stdin io.Reader, stdout, stderr io.Writer) int {
	var err error
	switch task {
	case taskReceive:
		err = receive(stdin, stdout)
	case taskDrain:
		err = drainAndWeigh(ctx, stdin, stdout)
	default:
		err = fmt.Errorf("unknown task")
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench child %s: %v\n", task, err)
		return exitFailed
	}
	return 0
}

// command is this program as a child, with the Go runtime's own limits of memory, and ends with ctx.
func command(ctx context.Context, task string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, childArgument, task)
	cmd.Stderr = os.Stderr
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GOGC=") && !strings.HasPrefix(variable, "GOMEMLIMIT=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	return cmd, nil
}
