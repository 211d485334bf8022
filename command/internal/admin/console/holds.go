package console

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// holds are what held a process up in the last day.
type holds struct {
	Note, Label, None string
	Spans             []span
	Lines             []heldLine
}

// span is a rectangle of the last day: X and Width are minutes.
type span struct {
	Tone, X, Width, Text string
}

type heldLine struct {
	State standing
	From  moment
	Took  string
	Text  long
}

var spanTones = map[desk.Cause]string{desk.CauseHalt: "bad", desk.CauseNobody: "bad", desk.CauseLock: "bad", desk.CauseReceiver: "warn", desk.CauseFence: "warn", desk.CauseLimit: "idle", desk.CausePause: "idle"}

func newHolds(p desk.Process, now time.Time) holds {
	const day = 24 * time.Hour
	h := holds{Label: "what held it in the last 24 hours", None: "Nothing held it up, as far as somebody looked."}
	if !p.Since.IsZero() {
		h.Note = "seen since " + newMoment(p.Since).Text
	}
	for i, s := range p.Held {
		begin := max(0, day-now.Sub(s.From))
		width := max(s.To.Sub(s.From), 4*time.Minute)
		h.Spans = append(h.Spans, span{spanTones[s.Cause], fmt.Sprintf("%.0f", begin.Minutes()), fmt.Sprintf("%.0f", width.Minutes()), causeWords[s.Cause] + ", " + took(s.To.Sub(s.From).Seconds())})
		if i >= 12 {
			continue // the bar has them all
		}
		text := s.Text
		if s.Who != "" {
			text = s.Who + ": " + text
		}
		length := took(s.To.Sub(s.From).Seconds())
		if s.Open {
			length += ", goes on"
		}
		h.Lines = append(h.Lines, heldLine{standing{causeWords[s.Cause], spanTones[s.Cause]}, newMoment(s.From), length, newLong("h-"+htmlID(s.From.String()), text)})
	}
	return h
}
