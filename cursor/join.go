package cursor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPoolTooSmall: the pool has fewer connections than the processes that run on it
// need at the same time.
var ErrPoolTooSmall = errors.New("the connection pool is too small")

// joined counts the connections that running processes need at the same time.
type joined struct {
	mu        sync.Mutex
	processes int
	conns     int32
}

// Join announces a process that needs so many connections of the pool at the same
// time, until leave is called. It returns ErrPoolTooSmall, with the number that is
// needed, if the pool does not have them for all that have joined: processes that
// wait for each other's connections would keep their leases meanwhile. It sees the
// processes of this store alone, so those that share a pool share a store. Of several
// stores on a pool that is too small the processes go on all the same, but slowly: a
// worker whose read waits for a connection lets its lease go after half of
// Config.Timeout, and the log says so.
func (s *Store) Join(process string, conns int32) (leave func(), err error) {
	j, allowed := &s.joined, s.pool.Config().MaxConns
	j.mu.Lock()
	defer j.mu.Unlock()
	if need := j.conns + conns; need > allowed {
		return nil, fmt.Errorf("process %q: %w: %d processes on it need %d connections at the same time, and it allows %d: raise MaxConns (pool_max_conns) to at least %d",
			process, ErrPoolTooSmall, j.processes+1, need, allowed, need)
	}
	j.processes++
	j.conns += conns
	return sync.OnceFunc(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.processes--
		j.conns -= conns
	}), nil
}

// Pool returns the pool of the store.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// LeaseTimeout returns Config.Timeout, or its default.
func (s *Store) LeaseTimeout() time.Duration { return s.config.Timeout }
