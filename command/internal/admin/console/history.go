package console

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// history is a time line of events.
type history struct {
	All, None string
	Events    []happened
}

type happened struct {
	Tone, Action, By, Reason string
	At                       moment
	Detail                   long
}

// eventTones are the colours of events.
var eventTones = map[string]string{"halt": "bad", "skip": "warn", "seek": "warn", "dead_letter": "warn", "discard": "warn", "pause": "warn", "resume": "ok", "retry": "ok", "replay": "ok"}

func newHistory(p desk.Process) history {
	h := history{None: "Nothing was done to it yet.", All: "/audit?process=" + queryEscape(p.Line.Process)}
	if p.HeadProblem != "" {
		h.None = "Nothing is known that was done to it."
	}
	for _, e := range p.History[:min(len(p.History), 20)] {
		h.Events = append(h.Events, newHappened(e))
	}
	return h
}

func newHappened(e desk.Event) happened {
	h := happened{Tone: eventTones[e.Action], Action: visible.Line(strings.ReplaceAll(e.Action, "_", " ")), At: newMoment(e.At), Reason: visible.Inline(visible.Start(e.Reason, 2000))}
	if e.Actor != "" {
		h.By = "by " + visible.Short(e.Actor)
	}
	var parts []string
	if e.RecordID != "" {
		parts = append(parts, "record "+visible.Short(e.RecordID))
	}
	if e.From != e.To && e.To != "" {
		parts = append(parts, "to "+visible.Short(e.To))
	}
	h.Detail = newLong(fmt.Sprintf("e-%d", e.ID), strings.Join(parts, " · "))
	return h
}
