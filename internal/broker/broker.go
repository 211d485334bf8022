package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

const (
	startTimeout = 2 * time.Minute // for a virtual machine on a busy computer
	logFile      = "output.log"
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

// server is what all brokers are: a program that listens on a port, and its files.
type server struct {
	name    string
	port    int
	dir     *throwaway.Dir
	command []string
	process *throwaway.Process
}

// open makes the directory, chooses a port unless one is set, and calls begin, which sets the command and calls Start. If
// that fails, open closes the server.
func (s *server) open(ctx context.Context, begin func() error) (err error) {
	if s.dir, err = throwaway.New(ctx); err != nil {
		return err
	}
	if s.port == 0 {
		s.port, err = throwaway.FreePort()
	}
	if err == nil {
		err = begin()
	}
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	return nil
}

// Addr returns the host and port. Kafka has neither TLS nor users there.
func (s *server) Addr() string { return loopback(s.port) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Start starts the broker again after Kill.
func (s *server) Start(ctx context.Context) (err error) {
	if s.process, err = s.dir.Start(logFile, s.command[0], s.command[1:]...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.process.AwaitListener(ctx, s.Addr()); err != nil {
		return fmt.Errorf("start %s: %w\n%s", s.name, err, s.Log())
	}
	return nil
}

// Kill ends the broker at once, as a crash would.
func (s *server) Kill(ctx context.Context) error { return s.process.Stop(ctx, syscall.SIGKILL) }

// Close ends the broker and removes its files.
func (s *server) Close(ctx context.Context) error { return s.dir.Close(ctx) }

// Log returns the end of the broker's output.
func (s *server) Log() string { return s.dir.Tail(logFile, logLines) }
