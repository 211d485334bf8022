package pglocal

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// Standby starts a hot standby on this machine that streams from s. It is a Server of its own, which the caller
// stops. SELECT pg_promote() makes it a primary. To copy s, it stops s in good order and starts it again, so call it
// before connections matter. It makes the manual's cold file system backup, since fetched programs do not include
// pg_basebackup: https://www.postgresql.org/docs/current/backup-file.html
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	return s.standby(ctx, func(*Server) error { return nil })
}

// standby calls change on the new server before that starts.
func (s *Server) standby(ctx context.Context, change func(*Server) error) (*Server, error) {
	dir, err := throwaway.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	standby := &Server{programs: s.programs, dir: dir, password: s.password, log: s.log}
	if err = change(standby); err == nil {
		err = s.copyTo(ctx, standby)
	}
	if err == nil {
		err = standby.follow(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a standby: %w", err), standby.Stop(context.WithoutCancel(ctx)))
	}
	return standby, nil
}

// copyTo copies the data directory while nothing writes to it. It starts s again even if the copy failed.
func (s *Server) copyTo(ctx context.Context, standby *Server) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.postgres.Stop(ctx, syscall.SIGINT); err != nil {
		return err
	}
	_, err := s.dir.Run(ctx, "cp", "-Rp", s.DataDir(), standby.DataDir())
	return errors.Join(err, s.start(ctx))
}

func (s *Server) follow(ctx context.Context, primary *Server) error {
	conninfo := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s", primary.port, superuser, primary.password)
	if err := s.configure(map[string]string{"primary_conninfo": conninfo}); err != nil {
		return err
	}
	if err := s.dir.WriteFile(dataDir+"/standby.signal", nil); err != nil {
		return err
	}
	return s.startOnFreePort(ctx)
}
