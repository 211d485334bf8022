package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// dependencies are the things that processes share.
type dependencies struct {
	config Config
	pool   *pgxpool.Pool
	store  *cursor.Store
	stdout io.Writer
	logger *slog.Logger // nil: log nothing
	grace  time.Duration
	// checkpoint is the setting of the process that is built.
	checkpoint int
	// observe gets each event of the processor; nil: no one listens.
	observe func(processor.Event)
	// closers collects the sinks that are to be closed when the processes have ended. nil: nothing is delivered, so
	// nothing is opened.
	closers *closers
	// renewInterval is how often a sink looks at the files of its secrets without a failure; 0: it does not follow
	// them.
	renewInterval time.Duration
	rotation      *rotation // of the process that is built; nil: it follows no files
}

// closers are sinks that hold a resource until they are closed.
type closers []io.Closer

func (c *closers) add(closer io.Closer) {
	if c != nil {
		*c = append(*c, closer)
	}
}

// close closes all sinks at once, because each may wait some seconds for a silent receiver. A sink that fails to
// close loses nothing: no call is under way.
func (c *closers) close() {
	var closing sync.WaitGroup
	for _, closer := range *c {
		closing.Go(func() { _ = closer.Close() })
	}
	closing.Wait()
}

// build makes a process from its configuration. It touches neither the database nor the receiver yet.
func (p Process) build(d dependencies) (*processor.Process, *table.Source, error) {
	source, err := d.config.source(p, d.pool, d.logger)
	if err != nil {
		return nil, nil, err
	}
	d.rotation, d.checkpoint = p.rotation(d), p.filled().Checkpoint
	dispatch, timeout, err := p.Sink.open(d)
	if err != nil {
		return nil, nil, fmt.Errorf("process %q: %w", p.Name, err)
	}
	config := p.processorConfig(d)
	if config.Prepare, err = p.prepare(); err != nil {
		return nil, nil, fmt.Errorf("process %q: %w", p.Name, err)
	}
	config.Source, config.Dispatch, config.Timeout = source, dispatch, timeout
	process, err := processor.New(config)
	return process, source, err
}

// processorConfig returns the settings that go from the file to the processor unchanged.
func (p Process) processorConfig(d dependencies) processor.Config {
	c := p.Config
	c.Process, c.Store, c.Grace, c.Logger, c.Observe = p.Name, d.store, d.grace, quietly(d.logger), d.observe
	return c
}

// source makes the source of a process.
func (c Config) source(p Process, pool *pgxpool.Pool, logger *slog.Logger) (*table.Source, error) {
	return c.sourceOf(p, p.Source, pool, logger)
}

// keys makes the source for commands that look and decide. It reads keys, not the content of records.
func (c Config) keys(p Process, pool *pgxpool.Pool) (*table.Source, error) {
	config := p.Source
	config.KeysOnly = true
	return c.sourceOf(p, config, pool, nil)
}

func (c Config) sourceOf(p Process, config table.Config, pool *pgxpool.Pool, logger *slog.Logger) (*table.Source, error) {
	config.Logger = quietly(logger).With("process", p.Name)
	config.Meant = func(ctx context.Context) (string, error) { return c.meant(ctx, pool, p) }
	source, err := table.New(pool, config)
	if err != nil {
		return nil, fmt.Errorf("process %q: %w", p.Name, err)
	}
	return source, nil
}

// quietly returns the logger, or one that discards everything if there is none.
func quietly(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}
