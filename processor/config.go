package processor

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Config describes one process. Zero values mean defaults.
type Config struct {
	// Process names the cursor. Required.
	Process string
	// Store holds the cursor. Required.
	Store *cursor.Store
	// Source yields the records. Required.
	Source Source
	// Dispatch is the sink with its guarantee: Each, Batch or InTx. Required.
	Dispatch Dispatch

	// Start is where a cursor begins when the process is run for the first
	// time: Beginning, End or a position of the source. A cursor that exists is not
	// moved. There is no default: without Start a new process runs only while its
	// source holds no record, and returns a *NoStartError otherwise.
	Start cursor.Position
	// Recreate allows a cursor that had existed and was deleted or renamed to be
	// made again at Start. Without it such a process refuses to run, since it would
	// send everything a second time. See also cursor.Store.Forget.
	Recreate bool

	// Batch bounds the records of one call of a BatchSink, and of one read; while
	// they go out fast, a read takes up to sixteen times as many. Default 500, at
	// most 10,000.
	Batch int
	// Checkpoint is how many records lie between two durable advances, and so
	// how many are delivered again after a fault. Default 1, at most Batch.
	// A BatchSink advances behind every acknowledged prefix instead.
	Checkpoint int
	// Poll is the longest idle wait between two looks at the source; it is
	// shorter, from 5 ms on, after work. Default 200 ms, at least 5 ms, at most 1 m.
	Poll time.Duration
	// Timeout bounds one sink call. Default 30 s, at most 1 h; under InTx at most 10 m,
	// and the server keeps the lock of a worker that went silent for 10 s longer than that.
	Timeout time.Duration
	// Grace is how long a sink call in flight may go on after the context of
	// Run has ended. Default 20 s.
	Grace time.Duration
	// Retry says when a failed record is tried again.
	Retry Retry
	// DeadLetter puts a record that would halt the process aside, as a dead letter
	// with its error, and goes on behind it. Default: the process halts.
	DeadLetter bool
	// DeadLetterRun is how many records in a row may become dead letters, with none
	// delivered between them. The next one halts the process: a receiver that refuses
	// all of them is no word on any. Default Breaker.Failures, or 10 without a Breaker.
	DeadLetterRun int
	// Limit bounds the records handed to the sink in a time. Default: no limit.
	Limit Limit
	// Breaker waits when the receiver seems to be down. Default: never.
	Breaker Breaker
	// HaltOnTimeout halts the process when a sink call ends by time-out, which
	// leaves its outcome unknown. Default: the record is tried again.
	HaltOnTimeout bool

	// Logger receives what an operator should know. Default: slog.Default().
	Logger *slog.Logger
	// Observe is told what happens, for metrics. It is called by the goroutines of
	// the process, which wait for it. Default: nobody is told.
	Observe func(Event)
	// TracerProvider makes a span of each attempt, with the trace of the record's
	// headers traceparent and tracestate as its parent, or, in a Batch, as a link. The
	// sink's context holds the span. Default: the global one of OpenTelemetry, which
	// makes none until a program installs another.
	TracerProvider trace.TracerProvider
}

// Retry says when a failed record is tried again: after Initial, then after
// twice as long each time, up to Max, each delay moved by Jitter percent.
type Retry struct {
	// Initial is the first delay. Default 100 ms, at least 1 ms.
	Initial time.Duration
	// Max is the longest delay. Default 1 m, at least Initial, at most 24 h.
	Max time.Duration
	// Jitter moves each delay at random, in percent of it, either way. 0 to 100.
	Jitter int
	// Attempts is how many attempts a record has before its process halts.
	// 0 means any number.
	Attempts int
}

const (
	defaultBatch      = 500
	maxBatch          = 10_000
	defaultPoll       = 200 * time.Millisecond
	minPoll           = 5 * time.Millisecond
	maxPoll           = time.Minute
	defaultTimeout    = 30 * time.Second
	maxTimeout        = time.Hour
	defaultGrace      = 20 * time.Second
	defaultRetryFirst = 100 * time.Millisecond
	defaultRetryMax   = time.Minute
	maxRetryDelay     = 24 * time.Hour
	minLimitPer       = time.Second
	maxLimitPer       = time.Hour
	defaultCooldown   = 30 * time.Second
	defaultLetterRun  = 10
	// maxTxTimeout bounds Timeout of an InTx sink: the server keeps the lock of its
	// worker for that long and a little more, should it go silent in a call.
	maxTxTimeout = 10 * time.Minute
)

func (c Config) withDefaults() Config {
	if c.Batch == 0 {
		c.Batch = defaultBatch
	}
	if c.Checkpoint == 0 {
		c.Checkpoint = 1
	}
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.Retry.Initial == 0 {
		c.Retry.Initial = defaultRetryFirst
	}
	if c.Retry.Max == 0 {
		c.Retry.Max = max(defaultRetryMax, c.Retry.Initial)
	}
	if c.DeadLetterRun == 0 {
		c.DeadLetterRun = cmp.Or(c.Breaker.Failures, defaultLetterRun)
	}
	if c.Breaker.Failures > 0 && c.Breaker.Cooldown == 0 {
		c.Breaker.Cooldown = defaultCooldown
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return c
}

// validate returns every fault at once.
func (c Config) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Process == "", "the process has no name")
	fault(c.Store == nil, "the process has no cursor store")
	fault(c.Source == nil, "the process has no source")
	fault(c.Dispatch.deliver == nil, "the process has no dispatch: choose Each, Batch or InTx")
	fault(c.Batch < 1 || c.Batch > maxBatch, "batch %d is not within 1 and %d", c.Batch, maxBatch)
	fault(c.Checkpoint < 1 || c.Checkpoint > c.Batch, "checkpoint %d is not within 1 and batch (%d)", c.Checkpoint, c.Batch)
	fault(c.Poll < minPoll || c.Poll > maxPoll, "poll %v is not within %v and %v", c.Poll, minPoll, maxPoll)
	fault(c.Timeout < 0 || c.Timeout > maxTimeout, "timeout %v is not within 0 and %v", c.Timeout, maxTimeout)
	fault(c.Dispatch.deliver != nil && !c.Dispatch.outlives && c.Timeout > maxTxTimeout,
		"timeout %v of an InTx sink is above %v, the longest for which the server may keep the lock of a worker that went silent (lease timeout)",
		c.Timeout, maxTxTimeout)
	fault(c.Grace < 0, "grace %v is negative", c.Grace)
	fault(c.Retry.Initial < time.Millisecond, "retry.initial %v is below 1ms", c.Retry.Initial)
	fault(c.Retry.Max < c.Retry.Initial, "retry.max %v is below retry.initial %v", c.Retry.Max, c.Retry.Initial)
	fault(c.Retry.Max > maxRetryDelay, "retry.max %v is above %v", c.Retry.Max, maxRetryDelay)
	fault(c.Retry.Jitter < 0 || c.Retry.Jitter > 100, "retry.jitter %d%% is not within 0%% and 100%%", c.Retry.Jitter)
	fault(c.Retry.Attempts < 0, "retry.attempts %d is negative", c.Retry.Attempts)
	fault(c.DeadLetterRun < 1, "dead_letter_run %d is not at least 1", c.DeadLetterRun)
	fault(c.Limit.Records < 0, "limit %d is negative", c.Limit.Records)
	fault(c.Limit.Records > 0 && (c.Limit.Per < minLimitPer || c.Limit.Per > maxLimitPer), "limit: its time %v is not within %v and %v", c.Limit.Per, minLimitPer, maxLimitPer)
	fault(c.Breaker.Failures < 0, "breaker.failures %d is negative", c.Breaker.Failures)
	fault(c.Breaker.Cooldown < 0 || c.Breaker.Cooldown > maxRetryDelay, "breaker.cooldown %v is not within 0 and %v", c.Breaker.Cooldown, maxRetryDelay)
	fault(c.Breaker.Failures > 0 && c.Breaker.Failures <= c.Retry.Attempts,
		"breaker.failures %d must be above retry.attempts %d: while the breaker is open attempts do not count, so no record would ever have had them all",
		c.Breaker.Failures, c.Retry.Attempts)
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("process %q: %w", c.Process, err)
	}
	return nil
}
