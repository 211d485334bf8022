// Package child runs a command to its end, for programs that start a server around it.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Failed is the exit status of a command that could not run, or that a signal ended.
const Failed = 1

// Run runs the command and returns its exit status. Ctrl-C reaches the command from the terminal, and Run waits until
// the command ends. Run passes SIGTERM on.
func Run(command []string) (status int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return Failed, fmt.Errorf("run %s: %w", command[0], err)
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
		return Failed, err
	}
}
