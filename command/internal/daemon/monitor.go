package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// monitor reports the state of a daemon to HTTP clients.
type monitor struct {
	metrics *metrics.Metrics
	pulses  pulses
	rounds  rounds
	watched map[string]watched // by process
	looker  *looker
	counter *counter
	records *recordsServer // nil: receivers may not ask
	console http.Handler   // has all other paths; nil: there are none

	maxSilence time.Duration // of any process; 0: its own
}

func newMonitor(c RunConfig, pool *pgxpool.Pool, store *cursor.Store) *monitor {
	m := &monitor{metrics: metrics.New(c.Config.Names()), pulses: pulses{}, rounds: rounds{}, watched: map[string]watched{}, maxSilence: c.maxSilence}
	every := cmp.Or(c.lookInterval, lookInterval)
	m.looker = &looker{
		config: c.Config, pool: pool, store: store, watched: m.watched, metrics: m.metrics, log: c.Logger, every: every, logged: problems{},
		inspected: inspected{},
	}
	m.counter = &counter{store: store, watched: m.watched, metrics: m.metrics, log: c.Logger, every: every, logged: problems{}, trails: map[string]trail{}}
	return m
}

// observe is the processor.Config.Observe of all processes.
func (m *monitor) observe(e processor.Event) {
	m.pulses.observe(e)
	m.rounds.observe(e)
	m.metrics.Observe(e)
}

// watch adds a process, before it runs.
func (m *monitor) watch(p Process, process *processor.Process, read *table.Source) error {
	count, err := m.looker.config.source(p, m.looker.pool, nil)
	if err != nil {
		return err
	}
	m.watched[p.Name] = watched{p, read, count}
	m.metrics.LeaseBound(p.Name, process.MaxLease())
	m.rounds[p.Name] = &lastRound{}
	m.looker.inspected[p.Name] = &atomic.Bool{}
	m.pulses[p.Name] = newPulse(p.Name, cmp.Or(m.maxSilence, process.MaxSilence()))
	return nil
}

// ended notes that a process has finished. m may be nil.
func (m *monitor) ended(process string) {
	if m != nil {
		m.pulses[process].over.Store(true)
	}
}

// look keeps the gauges, except the lag, up to date until the crew ends.
func (c *crew) look() error {
	c.monitor.looker.run(c.ctx)
	return nil
}

// count keeps the lag up to date until the crew ends.
func (c *crew) count() error {
	c.monitor.counter.run(c.ctx)
	return nil
}

// fault returns why nothing can be delivered, as far as the database decides that.
func (m *monitor) fault() error {
	if err := m.looker.fault(); err != nil {
		return err
	}
	if err := m.rounds.fault(m.looker.failed()); err != nil {
		return err
	}
	return m.looker.inspected.fault(func(process string) bool { return m.pulses[process].over.Load() })
}

var errStopping = errors.New("stopping")

// server has the routes of the monitor.
func (c *crew) server(address net.Addr) *http.Server {
	ready := func() error {
		if c.ctx.Err() != nil {
			return errStopping
		}
		return c.monitor.fault()
	}
	routes := map[string]http.Handler{
		"/metrics": c.monitor.metrics.Handler(),
		"/healthz": probe(c.monitor.pulses.faults),
		"/readyz":  probe(ready),
	}
	if c.monitor.records != nil {
		routes["/records/{process}"] = c.monitor.records
	}
	return newServer(c.log, isLoopback(address), routes, c.monitor.console)
}

// serve answers until it is stopped. If it cannot serve, the deliveries go on.
func (c *crew) serve(server *http.Server, listener net.Listener) error {
	c.log.Info("serving /metrics, /healthz and /readyz", "address", listener.Addr().String(), "console", c.monitor.console != nil)
	if c.monitor.records != nil && !isLoopback(listener.Addr()) {
		c.log.Warn("records and the listen_token go over the network in the clear", "fix", "set --listen to an address of this machine only, behind a proxy with TLS")
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		c.log.Error("metrics and health are no longer served: restart the worker", "err", err)
		<-c.ctx.Done()
	}
	return nil
}

// stopServing keeps answering while the processes finish, so that their last deliveries are counted.
func (c *crew) stopServing(server *http.Server) {
	go func() {
		c.working.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}()
}

// lastAnswers is how long an answer may take at the end.
const lastAnswers = time.Second
