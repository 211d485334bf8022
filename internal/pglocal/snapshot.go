package pglocal

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

const snapshotDir = "snapshot"

// Snapshot copies the data directory, as a snapshot of a disk does. To do so it stops s in good order and starts it
// again. It replaces the earlier snapshot.
func (s *Server) Snapshot(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.postgres.Stop(ctx, syscall.SIGINT); err != nil {
		return err
	}
	_, err := s.dir.Run(ctx, "sh", "-ec", `rm -rf "$2"; cp -Rp "$1" "$2"`, "sh", s.DataDir(), s.dir.Path(snapshotDir))
	if err := errors.Join(err, s.start(ctx)); err != nil {
		return fmt.Errorf("take a snapshot of the local PostgreSQL: %w", err)
	}
	return nil
}

// PutBack ends the server as a crash would, and starts it again on the files of its snapshot: the same cluster, on
// the same timeline, without the later writes.
func (s *Server) PutBack(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.postgres.Stop(ctx, syscall.SIGQUIT); err != nil {
		return err
	}
	_, err := s.dir.Run(ctx, "sh", "-ec", `[ -d "$2" ]; rm -rf "$1"; cp -Rp "$2" "$1"`, "sh", s.DataDir(), s.dir.Path(snapshotDir))
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("put the snapshot of the local PostgreSQL back: %w", err)
	}
	return nil
}
