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
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Config describes one process. Zero values mean defaults. If a field has a knob tag, its default and bounds
// are in the tag.
type Config struct {
	// Process is the name of the cursor. Required.
	Process string
	// Store holds the cursor. Required.
	Store *cursor.Store
	// Source returns the records. Required.
	Source Source
	// Dispatch is the sink with its guarantee: Each, Batch, Pipeline or InTx. Required.
	Dispatch Dispatch

	// Prepare makes each record ready for the sink after it was read: see Prepare. Default: records go out as they
	// are in the table.
	Prepare Prepare

	// Start is where a new cursor begins: beginning, end, or a position of the source as `status` shows it. It
	// counts only when the cursor is made, so remove it from a file after the first run. There is no default:
	// without it a new process runs only while its source holds no record, and otherwise Run returns a
	// *NoStartError.
	//
	// In the file: where a new cursor begins: `beginning`, `end` (only records that come from now on) or a
	// position as `status` shows it. It counts only when the cursor is made, so remove it after the first run.
	// A new process on a table that holds records must have it.
	Start cursor.Position `knob:"start" like:"start: beginning"`
	// Recreate allows Run to make the cursor again, at Start, if it existed and was deleted or renamed. Without
	// it such a process refuses to run, since it would send everything a second time. See also
	// operator.Operator.Forget.
	Recreate bool

	// Batch bounds the records of one read, and of one call of a BatchSink. While records go out fast, a read
	// takes up to sixteen times as many.
	//
	// In the file: how many records one read takes. For a fast receiver it takes up to sixteen times as many.
	Batch int `knob:"batch" default:"500" min:"1" max:"10_000"`
	// Checkpoint is how many records go out between two durable advances, and so how many may come again after
	// a fault. A BatchSink advances after every acknowledged prefix instead.
	//
	// In the file: how many records go out between two durable advances. That many may come again after a
	// fault.
	Checkpoint int `knob:"checkpoint" default:"1" min:"1" max:"batch"`
	// Poll is the longest wait between two looks at the source while there is nothing to deliver. After work
	// the wait is shorter, from 5 ms on.
	Poll time.Duration `knob:"poll" default:"200ms" min:"5ms" max:"1m"`
	// Limit bounds how many records go to the sink in a time, evenly spread. Default: no limit.
	//
	// In the file: how many records may go out per second, minute or hour, evenly spread: `50/s`, `100/m`,
	// `1000/h`. Default: no limit.
	Limit Limit `knob:"limit" like:"limit: 50/s" pattern:"^[1-9][0-9]*/[smh]$"`

	// Retry configures when a failed record is tried again.
	Retry Retry `knob:"retry"`
	// Breaker makes the process wait when the receiver seems to be down. Default: never.
	//
	// In the file: waits when the receiver seems to be down. After `failures` failed attempts in a row the
	// process waits for `cooldown`, then tries one record. Failures while the breaker is open do not count
	// towards `retry.attempts`. Default: no breaker.
	Breaker Breaker `knob:"breaker"`
	// HaltOnTimeout halts the process when a sink call ends by time-out, which leaves its outcome unknown.
	// Default: the record is tried again.
	//
	// In the file: `retry` or `halt` if the outcome of a call is unknown, as after a time-out.
	HaltOnTimeout bool `knob:"on_timeout" true:"halt" false:"retry"`
	// DeadLetter puts a record that would halt the process aside, as a dead letter with its error. Then the
	// process goes on after it. Default: the process halts.
	//
	// In the file: `halt` at a record that fails for good, or `dead_letter` to put it aside with its error and
	// go on.
	DeadLetter bool `knob:"on_poison" true:"dead_letter" false:"halt"`
	// DeadLetterRun is how many records in a row may become dead letters, with none delivered between them. The
	// next one halts the process: if a receiver refuses all records, that shows nothing about any one of them.
	// Default: Breaker.Failures, or 10 without a Breaker.
	//
	// In the file: how many records in a row may be put aside. The next one halts the process. Default:
	// `breaker.failures`, or 10 without a breaker.
	DeadLetterRun int `knob:"dead_letter_run" min:"1" max:"1_000_000_000"`

	// Timeout bounds one sink call, and the preparation of one record. With InTx it is at most 10 m, and the server keeps the lock of a silent
	// worker for 10 s longer than that.
	Timeout time.Duration `knob:"-timeout" default:"30s" min:"1ns" max:"1h"`
	// Grace is how long a sink call in flight may go on after the context of Run has ended.
	Grace time.Duration `knob:"-grace" default:"20s" min:"1ns"`

	// Logger receives the messages for operators. Default: slog.Default().
	Logger *slog.Logger
	// Observe receives every Event, for metrics. The goroutines of the process call it, and wait for it.
	// Default: no call.
	Observe func(Event)
	// TracerProvider makes a span of each attempt. Its parent is the trace in the record's headers traceparent
	// and tracestate; in a Batch that trace is a link instead. The sink's context holds the span. Default: the
	// global provider of OpenTelemetry, which makes no spans until a program installs another.
	TracerProvider trace.TracerProvider
}

// Retry configures when a failed record is tried again: after Initial, then after twice as long each time, up
// to Max. Each delay is moved by Jitter percent.
type Retry struct {
	// Initial is the delay after the first failure. It doubles with each further one.
	Initial time.Duration `knob:"initial" default:"100ms" min:"1ms" max:"24h"`
	// Max is the longest delay. If Initial is above the default, Max is by default as long as Initial.
	//
	// In the file: the longest delay. If `initial` is above the default, `max` is by default as long as `initial`.
	Max time.Duration `knob:"max" default:"1m" min:"initial" max:"24h"`
	// Jitter moves each delay at random, in percent of it, either way, so that many processes that failed
	// together do not come back together. NoJitter moves none.
	//
	// In the file: moves each delay at random, either way, so that many processes that failed together do not
	// come back together.
	Jitter int `knob:"jitter" default:"20" min:"0" max:"100" percent:"true" zero:"-1"`
	// Attempts is how many attempts a record has before its process halts; 0 means any number.
	//
	// In the file: how many attempts a record has before the process halts, or puts it aside; 0 means any
	// number. With `on_poison: dead_letter`, attempts that did not reach the receiver do not count.
	Attempts int `knob:"attempts" default:"0" min:"0" max:"1_000_000_000"`
}

// NoJitter is a Retry.Jitter of 0 %, since the zero value means the default.
const NoJitter = -1

const (
	minLimitPer      = time.Second
	maxLimitPer      = time.Hour
	defaultLetterRun = 10
	// maxTxTimeout bounds Timeout of an InTx sink. If its worker goes silent in a call, the server keeps the
	// lock for that long and a little more.
	maxTxTimeout = 10 * time.Minute
)

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	if c.DeadLetterRun == 0 {
		c.DeadLetterRun = cmp.Or(c.Breaker.Failures, defaultLetterRun)
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
	faults := knob.Faults{knob.Check(c)}
	fault := faults.If
	fault(c.Process == "", "the process has no name")
	fault(c.Store == nil, "the process has no cursor store")
	fault(c.Source == nil, "the process has no source")
	fault(c.Dispatch.kind == 0, "the process has no dispatch: choose Each, Batch, Pipeline or InTx")
	fault(c.Dispatch.atomic() && c.Timeout > maxTxTimeout,
		"the timeout of an InTx sink must be at most %[2]v, got %[1]v: the server keeps the lock of a worker that goes silent in a call for as long",
		c.Timeout, maxTxTimeout)
	fault(c.Limit.Records < 0, "limit must not be negative, got %d", c.Limit.Records)
	fault(c.Limit.Records > 0 && (c.Limit.Per < minLimitPer || c.Limit.Per > maxLimitPer), "limit: its time must be between %v and %v, got %v", minLimitPer, maxLimitPer, c.Limit.Per)
	fault(c.Breaker.Failures > 0 && c.Breaker.Failures <= c.Retry.Attempts,
		"breaker.failures must be above retry.attempts (%[2]d), got %[1]d: attempts do not count while the breaker is open, so no record would ever use them up",
		c.Breaker.Failures, c.Retry.Attempts)
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("process %q: %w", c.Process, err)
	}
	return nil
}
