package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// crew holds the processes of one daemon.
type crew struct {
	ctx       context.Context // of everything that runs
	stop      context.CancelFunc
	config    Config
	pool      *pgxpool.Pool
	store     *cursor.Store
	log       *slog.Logger
	processes []*processor.Process
	closers   closers  // of their sinks
	monitor   *monitor // nil: the daemon does not listen
	guard     *guard   // of the partitions
	notifier  *notifier
	draining  bool
	announced chan struct{}  // closed after the first attempt to note the configuration
	left      sync.WaitGroup // of processes that drain
	working   sync.WaitGroup // processes that have not returned

	renamed map[string]error // processes that do not begin; set before announced is closed
	refused bool             // no process begins, because the server lacks connections; set before announced is closed

	connectionsPatience time.Duration
	pruneInterval       time.Duration
	serverRun           string // the run of the server on which status knows the workers

	mu    sync.Mutex
	errs  []error
	going []string // names of processes that have not ended
}

func newCrew(ctx context.Context, c RunConfig, pool *pgxpool.Pool, store *cursor.Store) (*crew, error) {
	crew := &crew{config: c.Config, pool: pool, store: store, log: c.Logger, draining: c.Drain, announced: make(chan struct{})}
	with := dependencies{config: c.Config, pool: pool, store: store, stdout: c.Stdout, logger: c.Logger, grace: c.Grace, closers: &crew.closers,
		renewInterval: cmp.Or(c.renewInterval, renewInterval)}
	crew.connectionsPatience = cmp.Or(c.connectionsPatience, connectionsPatience)
	crew.pruneInterval = cmp.Or(c.pruneInterval, pruneInterval)
	var err error
	if crew.guard, err = newGuard(c, pool, store); err != nil {
		return nil, err
	}
	if crew.notifier, err = newNotifier(c, pool, store); err != nil {
		return nil, err
	}
	if c.Listen != "" {
		crew.monitor = newMonitor(c, pool, store)
		crew.notifier.measure(crew.monitor.metrics)
		if crew.monitor.records, err = newRecordsServer(c, pool, store); err != nil {
			return nil, err
		}
		with.observe = crew.monitor.observe
	}
	for _, p := range c.Config.Processes {
		process, source, err := p.build(with)
		if err == nil && crew.monitor != nil {
			err = crew.monitor.watch(p, process, source)
		}
		if err != nil {
			return nil, err
		}
		crew.processes = append(crew.processes, process)
	}
	crew.going = c.Config.Names()
	crew.left.Add(len(crew.processes))
	crew.working.Add(len(crew.processes))
	crew.ctx, crew.stop = context.WithCancel(ctx)
	return crew, nil
}

// keep notes how a process ended.
func (c *crew) keep(err error) error {
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs = append(c.errs, err)
	}
	return err
}

func (c *crew) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// ended notes that a process has ended.
func (c *crew) ended(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.going = slices.DeleteFunc(c.going, func(going string) bool { return going == name })
}

// unended returns the processes that have not ended. If there are none, a sink is being closed.
func (c *crew) unended() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.going)
}
