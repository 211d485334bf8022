package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// dependencies are what processes share.
type dependencies struct {
	pool   *pgxpool.Pool
	store  *cursor.Store
	stdout io.Writer
	logger *slog.Logger // nil: nothing is logged
	grace  time.Duration
}

// build makes a process out of its configuration. Nothing is touched yet.
func (p Process) build(d dependencies) (*processor.Process, *table.Source, error) {
	source, err := p.source(d.pool, d.logger)
	if err != nil {
		return nil, nil, err
	}
	dispatch, timeout, err := p.dispatch(d)
	if err != nil {
		return nil, nil, fmt.Errorf("process %q: %w", p.Name, err)
	}
	config := p.processorConfig(d)
	config.Source, config.Dispatch, config.Timeout = source, dispatch, timeout
	process, err := processor.New(config)
	return process, source, err
}

// processorConfig is what of the file goes to the processor as it stands.
func (p Process) processorConfig(d dependencies) processor.Config {
	return processor.Config{
		Process:       p.Name,
		Store:         d.store,
		Start:         p.Start,
		Recreate:      p.StartGiven,
		Batch:         p.Batch,
		Checkpoint:    p.Checkpoint,
		Poll:          p.Poll,
		Grace:         d.grace,
		Retry:         p.Retry,
		HaltOnTimeout: p.HaltOnTimeout,
		Logger:        d.logger,
	}
}

func (p Process) source(pool *pgxpool.Pool, logger *slog.Logger) (*table.Source, error) {
	config := p.Source
	if logger != nil {
		config.Logger = logger.With("process", p.Name)
	}
	source, err := table.New(pool, config)
	if err != nil {
		return nil, fmt.Errorf("process %q: %w", p.Name, err)
	}
	return source, nil
}

// dispatch makes the sink, under the guarantee it can keep, and says how long
// one call of it may take; 0 means the processor's default.
func (p Process) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	switch p.Sink.Kind {
	case SinkWebhook:
		sink, err := webhook.New(p.Sink.Webhook)
		return processor.Each(sink), callTimeout(p.Sink.Webhook.Timeout), err
	case SinkStdout:
		sink, err := stdout.New(stdout.Config{Writer: d.stdout})
		return processor.Each(sink), 0, err
	case SinkSQL:
		sink, err := newSQL(p.Sink.SQL)
		return processor.InTx(sink), 0, err
	default:
		return processor.Dispatch{}, 0, fmt.Errorf("the sink %q is not known", p.Sink.Kind)
	}
}

const (
	defaultWebhookTime = 10 * time.Second
	callMargin         = 5 * time.Second
)

// callTimeout leaves a webhook the time to end by its own time-out, which says
// more than that of the call: whether the receiver was reached.
func callTimeout(webhook time.Duration) time.Duration {
	if webhook == 0 {
		webhook = defaultWebhookTime
	}
	return min(webhook+callMargin, maxWebhookTime)
}
