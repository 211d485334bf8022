package cursor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPoolTooSmall reports that the pool has fewer connections than its processes need at the same time.
var ErrPoolTooSmall = errors.New("the connection pool is too small")

// joined counts the connections that running processes need at the same time.
type joined struct {
	mu        sync.Mutex
	processes int
	conns     int32
}

// Join announces a process that needs conns connections of the pool at the same time, until leave is called. If
// the pool does not have enough for all that have joined, Join returns ErrPoolTooSmall with the number needed:
// processes that wait for each other's connections would keep their leases meanwhile. It only sees the
// processes of this store, so processes that share a pool must share a store. If several stores share a pool
// that is too small, their processes still go on, but slowly. A worker whose read waits for a connection
// releases its lease after half of Config.Timeout, and logs that.
func (s *Store) Join(process string, conns int32) (leave func(), err error) {
	j, allowed := &s.joined, s.db.Pool.Config().MaxConns
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
func (s *Store) Pool() *pgxpool.Pool { return s.db.Pool }

// LeaseTimeout returns Config.Timeout, or its default.
func (s *Store) LeaseTimeout() time.Duration { return s.config.Timeout }
