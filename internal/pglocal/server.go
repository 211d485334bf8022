package pglocal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

const (
	superuser = "postgres"
	dataDir   = "data"
	logFile   = "server.log"

	// maxPidFile bounds how much of the postmaster's pid file is read. The file has eight short lines.
	maxPidFile = 4 << 10

	// startTimeout bounds one start of postgres, crash recovery included.
	startTimeout = time.Minute
	// portTries bounds how often a start is repeated because another process took the port first.
	portTries = 5
)

// Server is a PostgreSQL cluster that runs, or is stopped for the moment. It is safe for concurrent use.
type Server struct {
	programs installation
	dir      *throwaway.Dir
	password string
	port     int
	settings map[string]string
	log      *slog.Logger
	clock    *clock

	mu       sync.Mutex
	postgres *throwaway.Process // the last one started
}

// Start finds or fetches PostgreSQL, initialises a cluster and starts it. It returns once the server accepts
// connections. ctx bounds only the start. The caller calls Stop. If the caller ends without that, the server ends
// with it.
func Start(ctx context.Context, config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{password: rand.Text(), settings: config.Settings, log: config.Log}
	if s.dir, err = throwaway.New(ctx); err != nil {
		return nil, fmt.Errorf("start a local PostgreSQL: %w", err)
	}
	if err := s.build(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("start a local PostgreSQL: %w", err), s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Server) build(ctx context.Context, config Config) (err error) {
	if s.programs, err = install(ctx, config, s.dir); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	return s.startOnFreePort(ctx)
}

// initialise makes the data directory. It does not sync the files: if the machine crashes now, the owner is gone,
// too.
func (s *Server) initialise(ctx context.Context) error {
	if err := s.dir.WriteFile("password", []byte(s.password)); err != nil {
		return err
	}
	_, err := s.dir.Run(ctx, s.programs.program("initdb"),
		"--pgdata="+s.DataDir(),
		"--username="+superuser,
		"--pwfile="+s.dir.Path("password"),
		"--auth=scram-sha-256",
		"--encoding=UTF8",
		"--locale=C",
		"--no-sync",
		"--no-instructions")
	if err != nil {
		return fmt.Errorf("%w; if these programs are damaged, remove %s", err, s.programs.binDir)
	}
	return s.configure(s.settings)
}

// configure appends to postgresql.conf, where the last line of a name counts.
func (s *Server) configure(settings map[string]string) error {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(settings[name])
		fmt.Fprintf(&lines, "%s = '%s'\n", name, value)
	}
	return s.dir.AppendFile(dataDir+"/postgresql.conf", []byte(lines.String()))
}

// startOnFreePort tries another port if another process took the chosen one in the meantime.
func (s *Server) startOnFreePort(ctx context.Context) (err error) {
	for range portTries {
		if s.port, err = throwaway.FreePort(); err != nil {
			return err
		}
		err = s.start(ctx)
		if err == nil || throwaway.PortFree(s.port) {
			return err
		}
	}
	return err
}

// start runs postgres and waits until it accepts connections. The caller holds mu, or no one else knows s yet.
func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	program, args := s.clock.command(s.programs.program("postgres"), "-D", s.DataDir(), "-p", strconv.Itoa(s.port))
	p, err := s.dir.Start(logFile, program, args...)
	if err != nil {
		return err
	}
	s.postgres = p
	if err := s.awaitReady(ctx, p); err != nil {
		_ = p.Stop(ctx, syscall.SIGQUIT) // it has ended, or ctx has
		return fmt.Errorf("%w; the end of its log:\n%s\nCorrect what the log names, or set DATABASE_URL to a running server",
			err, s.LogTail())
	}
	return nil
}

// awaitReady watches the status that the postmaster keeps in its pid file, as pg_ctl does.
func (s *Server) awaitReady(ctx context.Context, p *throwaway.Process) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !s.ready(p) {
		select {
		case <-poll.C:
		case <-p.Done():
			return fmt.Errorf("postgres ended while starting (%v)", p.Err())
		case <-ctx.Done():
			return fmt.Errorf("postgres was not ready in time: %w", context.Cause(ctx))
		}
	}
	return nil
}

// ready reads the pid file. Its first line is the process id, which distinguishes it from the file of a crashed
// predecessor. Its eighth line is the status.
func (s *Server) ready(p *throwaway.Process) bool {
	lines := strings.Split(s.dir.Head(dataDir+"/postmaster.pid", maxPidFile), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(p.Pid()) && strings.TrimSpace(lines[7]) == "ready"
}

// URL returns the address of the database "postgres" for the superuser. It stays the same after a Restart.
func (s *Server) URL() string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     fmt.Sprintf("127.0.0.1:%d", s.port),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return address.String()
}

// Port returns the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// DataDir returns the cluster's data directory. If this process runs as root, another user owns it.
func (s *Server) DataDir() string { return s.dir.Path(dataDir) }

// Version returns the release in use, such as "15.18".
func (s *Server) Version() string { return s.programs.version.String() }

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail() string { return s.dir.Tail(logFile, 30) }

// Pid returns the process id of the last postmaster that was started.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.postgres.Pid()
}

// StopImmediate ends the server as a crash would (pg_ctl stop -m immediate): it makes no checkpoint and cuts off
// sessions, and the next Restart goes through crash recovery. The data stays. On a stopped server it does nothing.
func (s *Server) StopImmediate(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.postgres.Stop(ctx, syscall.SIGQUIT)
}

// StopFast ends the server in good order (pg_ctl stop -m fast): it cuts off sessions and makes a checkpoint. The data
// stays. On a stopped server it does nothing.
func (s *Server) StopFast(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.postgres.Stop(ctx, syscall.SIGINT)
}

// Restart starts the server again on the same port. It calls StopFast first if the server still runs.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.postgres.Stop(ctx, syscall.SIGINT); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("restart the local PostgreSQL: %w", err)
	}
	return nil
}

// Stop ends the server at once and removes all of its files. A second call does nothing.
func (s *Server) Stop(ctx context.Context) error { return s.dir.Close(ctx) }
