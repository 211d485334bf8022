package processor

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Event is an event in a process, for metrics: it names no record.
type Event struct {
	Process string
	Kind    EventKind
	// Records is how many records the event is about: those that a sink call acknowledged, or that an advance
	// passed.
	Records int
	// Class is the class of the error of an EventAttempt, EventHalt or EventDeadLetter; "" = none.
	Class cursor.Class
	// State is the result of an EventPass.
	State State
	// Took is how long the sink call lasted, or how long the wait will be.
	Took time.Duration
	// Created is when the last record of an EventAdvance was created; zero if that is not known.
	Created time.Time
}

// EventKind is the kind of an Event.
type EventKind string

const (
	// EventPass means that one pass of the loop ended, in Event.State. While none comes, the process is
	// neither making progress nor known to be idle.
	EventPass EventKind = "pass"
	// EventAttempt means that a sink call ended.
	EventAttempt EventKind = "attempt"
	// EventAdvance means that the cursor durably moved past Event.Records more.
	EventAdvance EventKind = "advance"
	// EventLease means that this worker has the lease of the process.
	EventLease EventKind = "lease"
	// EventRelease means that the lease is over, for any reason.
	EventRelease EventKind = "release"
	// EventTakeOver means that this worker took the process over and began an epoch.
	EventTakeOver EventKind = "take_over"
	// EventLeaseLost means that the lease ended without being given back.
	EventLeaseLost EventKind = "lease_lost"
	// EventDatabaseError means that a pass failed because of the database or the source.
	EventDatabaseError EventKind = "database_error"
	// EventHalt means that a record stopped the process.
	EventHalt EventKind = "halt"
	// EventDeadLetter means that a record became a dead letter.
	EventDeadLetter EventKind = "dead_letter"
	// EventLimited means that records wait for Event.Took until the limit lets them go.
	EventLimited EventKind = "limited"
	// EventBreaker means that the breaker is open, and the next attempt comes after Event.Took.
	EventBreaker EventKind = "breaker"
)

// observe calls Config.Observe.
func (c *Config) observe(e Event) {
	e.Process = c.Process
	c.Observe(e)
}

// databaseSilence is how long the statements of one pass may take together, each within its own time-out.
const databaseSilence = 2 * time.Minute

// MaxSilence is the longest time that Run may go without calling Config.Observe: a poll and a sink call that
// takes all of its time, with a database that is slow to answer. A process that is silent for longer is wedged.
func (p *Process) MaxSilence() time.Duration {
	return p.config.Timeout + txMargin + p.config.Poll + databaseSilence
}
