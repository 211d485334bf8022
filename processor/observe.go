package processor

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Event is something that happened in a process, for metrics: it names no record.
type Event struct {
	Process string
	Kind    EventKind
	// Records the event is about: those a sink call acknowledged, or an advance
	// passed.
	Records int
	// Class of the error of an EventAttempt, EventHalt or EventDeadLetter; "" = none.
	Class cursor.Class
	// State is what an EventPass found.
	State State
	// Took is how long the sink call lasted, or how long the wait will be.
	Took time.Duration
	// Created is when the last record of an EventAdvance was; zero if it is not
	// known.
	Created time.Time
}

// EventKind says what happened.
type EventKind string

const (
	// EventPass: one round of the loop ended, in Event.State. While none comes, the
	// process is neither making progress nor known to be idle.
	EventPass EventKind = "pass"
	// EventAttempt: a sink call ended.
	EventAttempt EventKind = "attempt"
	// EventAdvance: the cursor durably moved behind Event.Records more.
	EventAdvance EventKind = "advance"
	// EventLease: this worker has the lease of the process.
	EventLease EventKind = "lease"
	// EventRelease: the lease is over, by whatever cause.
	EventRelease EventKind = "release"
	// EventTakeOver: this worker took the process over and began an epoch.
	EventTakeOver EventKind = "take_over"
	// EventLeaseLost: the lease ended without being given back.
	EventLeaseLost EventKind = "lease_lost"
	// EventDatabaseError: a round failed by the database or the source.
	EventDatabaseError EventKind = "database_error"
	// EventHalt: a record stopped the process.
	EventHalt EventKind = "halt"
	// EventDeadLetter: a record was put aside.
	EventDeadLetter EventKind = "dead_letter"
	// EventLimited: records wait for Event.Took until the limit lets them go.
	EventLimited EventKind = "limited"
	// EventBreaker: the breaker is open, and the next attempt comes after
	// Event.Took.
	EventBreaker EventKind = "breaker"
)

// observe tells Config.Observe.
func (p *Process) observe(e Event) {
	e.Process = p.config.Process
	p.config.Observe(e)
}

// databaseSilence is what the statements of one round may take together, each
// within its own time-out.
const databaseSilence = 2 * time.Minute

// MaxSilence is for how long Run may tell nothing to Config.Observe: a poll and a
// sink call that takes all of its time, with a database that is slow to answer. A
// process that is silent for longer is wedged.
func (p *Process) MaxSilence() time.Duration {
	return p.config.Timeout + txMargin + p.config.Poll + databaseSilence
}
