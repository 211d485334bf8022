package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// sheet is a box of facts.
type sheet struct {
	Title, Note           string
	Facts                 []fact
	Said, Payload, Masked string
	SQL                   string
}

func newHead(p desk.Process) *sheet {
	if p.Head == nil && p.Failure == nil {
		if p.HeadProblem == "" {
			return nil
		}
		return &sheet{Title: "The record at the head", Masked: "Not everything is known: " + sentence(p.HeadProblem)}
	}
	s := &sheet{Title: "The record at the head", Note: "it is delivered next"}
	if f := p.Failure; f != nil {
		s.Note = counted(int64(f.Attempts), "attempt", "attempts")
		s.Said = visible.Text(f.Error)
		if p.Head == nil {
			s.Facts = append(s.Facts, written("id", f.RecordID), written("position", f.Position))
		}
	}
	if p.Head != nil {
		s.Facts = append(s.Facts, recordFacts(*p.Head)...)
		s.Payload, s.Masked = payloadOf(*p.Head)
	}
	if f := p.Failure; f != nil {
		s.Facts = append(s.Facts, said("first failed", newMoment(f.First).Text), said("last failed", newMoment(f.Last).Text), said("class", f.Class), said("next attempt", nextAttempt(*f)))
	}
	if p.HeadProblem != "" {
		s.Facts = append(s.Facts, said("problem", p.HeadProblem))
	}
	return s
}

func nextAttempt(f desk.Failure) string {
	switch {
	case f.Permanent:
		return "none: it failed for good, so it waits for your decision"
	case f.NextIn <= 0:
		return "due now"
	default:
		return "in " + took(f.NextIn)
	}
}

func recordFacts(r desk.Record) []fact {
	all := []fact{written("id", r.ID), written("position", r.Position)}
	for _, f := range []fact{written("key", r.Key), said("type", r.Type), written("dedup key", r.DedupKey), said("created", momentOf(r.CreatedAt).Text), said("fault", r.Fault)} {
		if f.Value.Short != "" {
			all = append(all, f)
		}
	}
	var names []string
	for name := range r.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, written("header "+visible.Short(name), r.Headers[name]))
	}
	return all
}

// payloadOf returns the payload, or why there is none to see.
func payloadOf(r desk.Record) (payload, masked string) {
	switch {
	case r.Masked:
		return "", "The payload is hidden: you may see it after a login with the right to operate, or to see payloads."
	case r.Withheld:
		return "", "The payload is hidden: the daemon's role in the database may not read it."
	case r.Payload == "":
		return "", "The payload is empty."
	case r.Cut:
		return visible.Text(r.Payload) + "\n…", ""
	default:
		return visible.Text(pretty(r.Payload)), ""
	}
}

// pretty indents JSON, and leaves anything else as it is.
func pretty(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if !json.Valid([]byte(text)) || encoder.Encode(json.RawMessage(text)) != nil {
		return text
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func newBlocker(p desk.Process) *sheet {
	if len(p.HeldBy) == 0 {
		return nil
	}
	h := p.HeldBy[0]
	s := &sheet{Title: "The session that holds the fence", Note: "the oldest of " + counted(int64(len(p.HeldBy)), "session", "sessions")}
	if len(p.HeldBy) == 1 {
		s.Note = ""
	}
	if h.PID != 0 {
		s.Facts = append(s.Facts, said("pid", fmt.Sprint(h.PID)))
	}
	for _, f := range []fact{written("prepared as", h.GID), said("application", h.Application), said("user", h.User), said("state", h.State), said("open since", momentOf(h.Since).Text), written("command", h.Command)} {
		if f.Value.Short != "" {
			s.Facts = append(s.Facts, f)
		}
	}
	if h.Next != "" {
		s.Facts = append(s.Facts, said("what to do", h.Next))
	}
	s.SQL = visible.Text(h.SQL)
	return s
}
