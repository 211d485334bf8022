package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/run"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// RunConfig describes how the processes of a file are run.
type RunConfig struct {
	// Config must have its Database. Required.
	Config Config
	// Drain makes Run end when every process has caught up or cannot go on.
	Drain bool
	// Grace is how long calls in flight may go on after the first signal.
	Grace time.Duration
	// Listen is the address of metrics and health, as host:port. Only this machine can reach :port. "": do not
	// listen.
	Listen string
	// Serve makes what else is served there: every path except those of metrics, health and records. nil: nothing.
	Serve               Serve
	pruneInterval       time.Duration // of retention; 0: pruneInterval. Tests prune more often
	lookInterval        time.Duration // of the monitor and the guard; 0: lookInterval and guardInterval. Tests look more often
	maxSilence          time.Duration // of a process that lives; 0: its own. Tests wait for less
	connectionsPatience time.Duration // with a server that is full; 0: connectionsPatience. Tests have less
	renewInterval       time.Duration // between two looks at files of secrets; 0: renewInterval. Tests look more often, or never
	// Stdout belongs to the stdout sink. Required.
	Stdout io.Writer
	// Logger is required.
	Logger *slog.Logger
	// Signals stop the program; the first one stops it gracefully. nil: none come.
	Signals <-chan os.Signal
	// Exit ends the program at once, at the second signal. Required with Signals.
	Exit func(code int)
}

// Run runs the processes until a signal comes or ctx ends. With Drain it also ends when all have caught up or cannot
// go on. Neither a database that is away nor a process that halts ends it. A database that refuses the login ends
// only a drain. The error joins the errors of all processes: see ExitCode.
func Run(ctx context.Context, c RunConfig) error {
	c.Logger = masked(c.Logger, c.Config.masks())
	var listener net.Listener
	if c.Listen != "" {
		var err error
		if listener, err = listen(ctx, c.Listen); err != nil {
			return err
		}
		defer listener.Close()
	}
	pool, store, err := c.Config.openAs(ctx, c.Logger, c.Config.watching)
	if err != nil {
		return err
	}
	defer closeSoon(pool)
	if err := enoughConns(pool.Config().MaxConns, len(c.Config.Processes)); err != nil {
		return &UsageError{err}
	}
	crew, err := newCrew(ctx, c, pool, store)
	if err != nil {
		return &UsageError{err}
	}
	if listener != nil && c.Serve != nil {
		handler, end, err := c.Serve(crew.ctx, Inside{RunConfig: c, Address: listener.Addr()})
		if err != nil {
			return &UsageError{err}
		}
		defer end()
		crew.monitor.console = handler
	}
	c.Logger.Info("starting", "worker", store.Worker(), "processes", c.Config.Names(), "connections", pool.Config().MaxConns)
	for _, e := range append(c.Config.exposed(), c.Config.exposures(pool.Config().ConnConfig)...) {
		e.warn(c.Logger)
	}
	return crew.run(newSignals(c, crew), listener)
}

// poolPatience is how long the connections have to end. Behind a network that stalls they take 12 s.
const poolPatience = 2 * time.Second

// closeSoon closes the pool, and leaves connections that do not end by then to the end of the program: no signal is
// heard any more.
func closeSoon(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(poolPatience):
	}
}

// apartIdle is how long a connection of Config.Apart stays open that nobody uses.
const apartIdle = 30 * time.Second

// open makes what all processes share. It does not connect yet.
func (c Config) open(ctx context.Context) (*pgxpool.Pool, *cursor.Store, error) {
	return c.openAs(ctx, nil, func(application string) string { return application })
}

// openAs is open with sessions whose application_name is changed.
func (c Config) openAs(ctx context.Context, log *slog.Logger, name func(application string) string) (*pgxpool.Pool, *cursor.Store, error) {
	config, err := poolConfig(c.Database, len(c.Processes))
	if err != nil {
		return nil, nil, &UsageError{fmt.Errorf("database: %w", err)}
	}
	if !given(c.Database, "pool_max_conns", "") {
		config.MaxConns = c.poolConns()
	}
	if c.conns > 0 {
		config.MaxConns, config.MaxConnIdleTime = c.conns, apartIdle
	}
	parameters := config.ConnConfig.RuntimeParams
	parameters["application_name"] = name(parameters["application_name"])
	c.renewLogin(config, log)
	pool, err := openPool(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	store, err := cursor.NewStore(pool, cursor.Config{Schema: c.Schema})
	if err != nil {
		pool.Close()
		return nil, nil, &UsageError{err}
	}
	return pool, store, nil
}

// run is the group of everything that goes on at once: the first member that returns ends the others.
func (c *crew) run(signals *signals, listener net.Listener) error {
	defer signals.forget()
	var group run.Group
	for i, process := range c.processes {
		name := c.config.Processes[i].Name
		group.Add(func() error { return c.work(name, process) }, func(error) { c.stop() })
	}
	group.Add(func() error { return c.announce() }, func(error) { c.stop() })
	group.Add(func() error { return c.guardPartitions() }, func(error) { c.stop() })
	group.Add(func() error { return c.keepPruning() }, func(error) { c.stop() })
	group.Add(func() error { return c.keepNotifying() }, func(error) { c.stop() })
	if c.monitor != nil {
		group.Add(func() error { return c.look() }, func(error) { c.stop() })
		group.Add(func() error { return c.count() }, func(error) { c.stop() })
		server := c.server(listener.Addr())
		group.Add(func() error { return c.serve(server, listener) }, func(error) { c.stopServing(server) })
	}
	group.Add(signals.wait, func(error) { signals.stop() })
	_ = group.Run() // the crew keeps the errors, including the first one
	c.closers.close()
	c.config.stores.close()
	return c.err()
}

// begin runs a process. It refuses one that seems to be an old process under a new name: see refuseNewNames.
func (c *crew) begin(name string, run func(context.Context) error) error {
	if c.refused {
		return nil // the error is noted already
	}
	if err := c.renamed[name]; err != nil {
		return err
	}
	return c.asUsage(run(c.ctx))
}

// work runs one process. A drained process waits for the others.
func (c *crew) work(name string, process *processor.Process) error {
	defer c.working.Done()
	defer c.ended(name)
	<-c.announced
	if !c.draining {
		return c.keep(c.begin(name, process.Run))
	}
	err := c.begin(name, process.Drain)
	if err == nil && c.ctx.Err() != nil && !c.refused {
		err = ErrInterrupted
	}
	err = c.keep(Reachable(err))
	c.monitor.ended(name)
	c.left.Done()
	c.left.Wait()
	return err
}
