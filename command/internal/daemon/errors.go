package daemon

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/closest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Exit codes of the command.
const (
	ExitDone   = 0
	ExitFailed = 1 // doctor: it found something
	ExitUsage  = 2 // wrong use or configuration
	ExitHalted = 3
)

// UsageError means wrong use or configuration: trying again does not help.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ErrInterrupted means that a signal ended a drain.
var ErrInterrupted = errors.New("interrupted before all was delivered: run it again")

// ErrFindings means that a command, such as doctor, found something, and has printed it.
var ErrFindings = errors.New("found something")

// ErrDiffers means that two versions differ, and it was printed in what.
var ErrDiffers = errors.New("the two versions differ")

// ErrHalted means that status found a halted process, and has printed it.
var ErrHalted = errors.New("a process is halted")

// ExitCode returns the code with which a command ends after err. A halt counts more than another failure beside it,
// because it does not pass by itself.
func ExitCode(err error) int {
	var usage *UsageError
	var halt *processor.HaltError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &halt), errors.Is(err, ErrHalted):
		return ExitHalted
	default:
		return ExitFailed
	}
}

func unknownProcess(name string, known []string) error {
	if len(known) == 0 {
		return usage("there is no process %q, and none at all yet: run one first, or name the configuration with -c", name)
	}
	if meant := closest.Name(name, known); meant != "" {
		return usage("there is no process %q: did you mean %s? There are %s", name, meant, strings.Join(known, ", "))
	}
	return usage("there is no process %q: there are %s", name, strings.Join(known, ", "))
}

// Reachable adds the next step to an error of connecting.
func Reachable(err error) error {
	var connectErr *pgconn.ConnectError
	if errors.As(err, &connectErr) {
		return fmt.Errorf("%w; %s", err, connectFix(err))
	}
	return err
}
