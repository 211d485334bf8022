package desk

import "context"

// AuditAsk chooses events.
type AuditAsk struct {
	// Process, Actor and Action are the only ones to show; "" is any.
	Process string
	Actor   string
	Action  string
	// Decisions leaves out what workers note of themselves, such as configure and watch.
	Decisions bool
	// Before is the id of an event: only older ones are shown; 0 is any.
	Before int64
	// Limit is at most MaxEvents; 0 is 100.
	Limit int
}

// MaxEvents bounds one page of events.
const MaxEvents = 1000

// Audit is a page of events, the newest first.
type Audit struct {
	Events []Event `json:"events"`
	// Next is AuditAsk.Before of the next page; 0 if this is the last one.
	Next int64 `json:"next,string"`
	// Actors are those who decided something of late, for a menu.
	Actors []string `json:"actors"`
}

// Audit returns a page of events of all processes.
func (d *Desk) Audit(_ context.Context, _ AuditAsk) (Audit, error) {
	return Audit{}, errNotBuilt
}
