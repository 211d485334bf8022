//go:build unix

package pglocal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Hang stops all processes of the server as a dead disk does. The kernel goes on to accept connections for it, and nothing
// answers on them. It needs /proc, as Linux has it.
func (s *Server) Hang() error {
	if err := syscall.Kill(s.Pid(), syscall.SIGSTOP); err != nil { // first, so that it starts no more
		return fmt.Errorf("hang the local PostgreSQL: %w", err)
	}
	return s.signalChildren(syscall.SIGSTOP)
}

// Wake lets all processes of the server go on.
func (s *Server) Wake() error {
	return errors.Join(s.signalChildren(syscall.SIGCONT), syscall.Kill(s.Pid(), syscall.SIGCONT))
}

func (s *Server) signalChildren(signal syscall.Signal) error {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find the processes of the local PostgreSQL: there is no /proc (%w)", err)
	}
	parent := strconv.Itoa(s.Pid())
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name of the program is in parentheses; behind it come the state and the parent.
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == parent {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil {
				err = syscall.Kill(pid, signal)
			}
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}
