package pglocal

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// clockC is a library that makes a program's wall clock slow. It must be loaded before libc.
//
//go:embed clock.c.txt
var clockC []byte

// clock is a wall clock that is behind. nil is the clock of this machine.
type clock struct {
	library string
	file    string // the library reads from it by how much the clock is behind
	behind  time.Duration
}

// StandbyBehind is Standby with a wall clock that is behind this machine's, also once it is promoted. A standby of
// that standby has the machine's clock again. It needs a C compiler, and a system that loads libraries by LD_PRELOAD.
func (s *Server) StandbyBehind(ctx context.Context, behind time.Duration) (*Server, error) {
	return s.standby(ctx, func(standby *Server) (err error) {
		standby.clock, err = standby.newClock(ctx, behind)
		return err
	})
}

// PutBackBehind is PutBack on a machine whose wall clock is further behind than that of s, by behind. It needs what
// StandbyBehind needs.
func (s *Server) PutBackBehind(ctx context.Context, behind time.Duration) error {
	s.mu.Lock()
	if s.clock != nil {
		behind += s.clock.behind
	}
	c, err := s.newClock(ctx, behind)
	if err == nil {
		s.clock = c
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.PutBack(ctx)
}

// SetBehind changes the wall clock of s while it runs. StandbyBehind or PutBackBehind must have given s that clock.
func (s *Server) SetBehind(behind time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		return errors.New("the server has the machine's clock")
	}
	s.clock.behind = behind
	return s.clock.write()
}

// HasCompiler reports whether this machine has what StandbyBehind needs.
func HasCompiler() bool {
	_, err := exec.LookPath("cc")
	return err == nil
}

func (s *Server) newClock(ctx context.Context, behind time.Duration) (*clock, error) {
	if err := s.dir.WriteFile("clock.c", clockC); err != nil {
		return nil, err
	}
	library := s.dir.Path("clock.so")
	if _, err := s.dir.Run(ctx, "cc", "-shared", "-fPIC", "-O1", "-o", library, s.dir.Path("clock.c"), "-ldl"); err != nil {
		return nil, fmt.Errorf("build a clock that is behind: %w", err)
	}
	c := &clock{library, s.dir.Path("clock.behind"), behind}
	return c, c.write()
}

// write changes the file in place: programs that run have mapped it.
func (c *clock) write() error {
	file, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(c.behind.Microseconds())), 0)
	return errors.Join(err, file.Close())
}

// command returns the program and arguments that run a program under the clock.
func (c *clock) command(program string, args ...string) (string, []string) {
	if c == nil {
		return program, args
	}
	set := []string{"LD_PRELOAD=" + c.library, "CLOCK_BEHIND=" + c.file, program}
	return "env", append(set, args...)
}
