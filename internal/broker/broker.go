package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

const (
	startTimeout = 2 * time.Minute // for a virtual machine on a busy computer
	logLines     = 30
)

// ErrMissing means that the program of a broker is not on this machine.
var ErrMissing = errors.New("not on this machine")

// find returns the path of a program that a Debian package installs.
func find(program, debian string) (string, error) {
	path, ok := pglocal.LookPath(program)
	if !ok {
		return "", fmt.Errorf("%w: %s; install it (on Debian: apt-get install %s)", ErrMissing, program, debian)
	}
	return path, nil
}

// listening waits until a broker that has just been started accepts connections.
func listening(ctx context.Context, name, addr string, process *throwaway.Process, log func() string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-poll.C:
		case <-process.Done():
			return fmt.Errorf("%s ended while starting: %w\n%s", name, process.Err(), log())
		case <-ctx.Done():
			return fmt.Errorf("%s did not start: %w\n%s", name, ctx.Err(), log())
		}
	}
}
