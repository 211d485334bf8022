package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

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

// defaultEvents is the length of a page if none is asked for.
const defaultEvents = 100

// actorsFrom is how many decisions are searched for the names of actors.
const actorsFrom = 1000

// Audit returns a page of events of all processes.
func (d *Desk) Audit(ctx context.Context, ask AuditAsk, sight Sight) (page Audit, err error) {
	limit := min(cmp.Or(max(ask.Limit, 0), defaultEvents), MaxEvents)
	err = d.question(ctx, func(ctx context.Context) error {
		op := d.asking.Operator()
		events, err := op.Audit(ctx, operator.AuditQuery{
			Process: ask.Process, Actor: ask.Actor, Action: ask.Action, Decisions: ask.Decisions, Before: ask.Before, Limit: limit + 1})
		if err != nil {
			return err
		}
		if len(events) > limit {
			events = events[:limit]
			page.Next = events[limit-1].ID
		}
		page.Events = sight.events(eventsOf(events))
		decisions, err := op.Audit(ctx, operator.AuditQuery{Decisions: true, Limit: actorsFrom})
		page.Actors = actors(decisions)
		return err
	})
	return page, err
}

// actors are the names of those who decided, sorted.
func actors(decisions []operator.Event) []string {
	names := []string{}
	for _, e := range decisions {
		if !slices.Contains(names, e.Actor) {
			names = append(names, e.Actor)
		}
	}
	slices.Sort(names)
	return names
}

func eventOf(e operator.Event) Event {
	var about struct {
		RecordID string `json:"record_id"`
	}
	_ = json.Unmarshal(e.Detail, &about) // an event that is about no record has none
	detail := e.Detail
	if len(detail) == 0 {
		detail = json.RawMessage("{}")
	}
	return Event{
		ID: e.ID, At: e.At.UTC(), Process: e.Process, Actor: e.Actor, User: e.User, Action: e.Action, Reason: e.Reason,
		From: string(e.From), To: string(e.To), RecordID: about.RecordID, Detail: detail,
	}
}

// guessable are the facts of an event with which a viewer can check a guess of what it may not see: the digests of
// payloads, and the salt of the digests of secrets.
var guessable = []string{"original_sha256", "payload_sha256", "salt"}

// events are events as a viewer may see them.
func (s Sight) events(all []Event) []Event {
	if s == Full {
		return all
	}
	shown := slices.Clone(all)
	for i, e := range shown {
		var facts map[string]json.RawMessage
		if json.Unmarshal(e.Detail, &facts) != nil || facts == nil {
			facts = map[string]json.RawMessage{} // it is not known what it has
		}
		maps.DeleteFunc(facts, func(name string, _ json.RawMessage) bool { return slices.Contains(guessable, name) })
		shown[i].Detail, _ = json.Marshal(facts) // what was read as JSON
	}
	return shown
}
