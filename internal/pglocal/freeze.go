package pglocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Freeze stops every process of the server (SIGSTOP), as a disk that hangs does: the kernel still accepts connections,
// and no byte comes back. The caller thaws it before it stops it. Linux only: it reads /proc.
func (s *Server) Freeze() error { return s.signalAll(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.signalAll(syscall.SIGCONT) }

// Kill ends every process of the server at once (SIGKILL), also of one that is frozen: it loses what its disk does not have. The
// next Restart goes through crash recovery. The data stays.
func (s *Server) Kill(ctx context.Context) error {
	pids, err := children(s.Pid())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.postgres.Stop(ctx, syscall.SIGKILL)
	for _, pid := range pids {
		if gone := syscall.Kill(pid, syscall.SIGKILL); gone != nil && !errors.Is(gone, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("end a session of the local PostgreSQL: %w", gone))
		}
	}
	return errors.Join(err, awaitEnd(ctx, pids))
}

// awaitEnd waits until processes have ended, reaped or not: the next server does not start while one has the memory of this one.
func awaitEnd(ctx context.Context, pids []int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for _, pid := range pids {
		for runs(pid) {
			select {
			case <-poll.C:
			case <-ctx.Done():
				return fmt.Errorf("wait for the end of process %d of the local PostgreSQL: %w", pid, context.Cause(ctx))
			}
		}
	}
	return nil
}

// runs reports whether a process has not ended.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// signalAll signals the postmaster first: once it is stopped it has no more children.
func (s *Server) signalAll(sig syscall.Signal) error {
	postmaster := s.Pid()
	if err := syscall.Kill(postmaster, sig); err != nil {
		return fmt.Errorf("signal the local PostgreSQL: %w", err)
	}
	pids, err := children(postmaster)
	for _, pid := range pids {
		if gone := syscall.Kill(pid, sig); gone != nil && !errors.Is(gone, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("signal a session of the local PostgreSQL: %w", gone))
		}
	}
	return err
}

// children are the processes whose parent is pid.
func children(pid int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent …: the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		found = append(found, child)
	}
	return found, nil
}
