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

// Freeze stops every process of the server (SIGSTOP), as a disk that hangs does: the kernel still accepts
// connections, and no byte comes back. The caller calls Thaw before it stops the server. Freeze reads /proc, so it
// needs Linux.
func (s *Server) Freeze() error { return s.signalAll(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.signalAll(syscall.SIGCONT) }

// Kill ends every process of the server at once (SIGKILL), even if the server is frozen. The server loses what is not
// on its disk, and the next Restart goes through crash recovery. The data directory stays.
func (s *Server) Kill(ctx context.Context) error {
	pids, err := children(s.Pid())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.postgres.Stop(ctx, syscall.SIGKILL), signalEach(pids, syscall.SIGKILL), awaitEnd(ctx, pids))
}

// awaitEnd waits until processes have ended, reaped or not. The next server does not start while one of them has the
// shared memory of this server.
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
	state, _, ok := look(pid)
	return ok && state != "Z" && state != "X"
}

// signalAll signals the postmaster first: once it is stopped it has no more children.
func (s *Server) signalAll(sig syscall.Signal) error {
	postmaster := s.Pid()
	if err := syscall.Kill(postmaster, sig); err != nil {
		return fmt.Errorf("signal the local PostgreSQL: %w", err)
	}
	pids, err := children(postmaster)
	return errors.Join(err, signalEach(pids, sig))
}

// signalEach signals the processes that have not ended.
func signalEach(pids []int, sig syscall.Signal) (err error) {
	for _, pid := range pids {
		if failed := syscall.Kill(pid, sig); failed != nil && !errors.Is(failed, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("signal process %d of the local PostgreSQL: %w", pid, failed))
		}
	}
	return err
}

// children returns the processes whose parent is pid.
func children(pid int) ([]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, errors.New("find the processes of the local PostgreSQL: there is no /proc")
	}
	var found []int
	for _, dir := range dirs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		if _, parent, ok := look(child); ok && parent == pid {
			found = append(found, child)
		}
	}
	return found, nil
}

// look returns the state of a process and its parent; ok is false if there is no such process any more.
func look(pid int) (state string, parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	// The format is: pid (name) state parent …. The name may contain anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}
