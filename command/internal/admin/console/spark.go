package console

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// spark is a small plot of a rate, as paths of an SVG.
type spark struct {
	Edge, Area string
	Width      int
	Label      string
}

const (
	sparkHeight = 24.0
	shortSpark  = 18 // the fewest values that fill the width
)

// newSpark draws values. Where one is nil, the line has a gap.
func newSpark(values []*float64) spark {
	for len(values) > 0 && values[0] == nil {
		values = values[1:]
	}
	top := 0.0
	for _, v := range values {
		if v != nil {
			top = max(top, *v)
		}
	}
	length := max(len(values), shortSpark)
	s := spark{Width: length - 1, Label: fmt.Sprintf("rate of the last minutes, at most %s", pace(top))}
	offset := length - len(values) // the newest is at the right
	var edge, area strings.Builder
	begun := -1
	end := func(at int) {
		if begun >= 0 {
			fmt.Fprintf(&area, "L%d %.0f L%d %.0f Z ", at, sparkHeight, begun, sparkHeight)
		}
		begun = -1
	}
	for i, v := range values {
		x := offset + i
		if v == nil {
			end(x - 1)
			continue
		}
		y := sparkHeight - 1.5
		if top > 0 {
			y -= *v / top * (sparkHeight - 4)
		}
		step := "L"
		if begun < 0 {
			step, begun = "M", x
		}
		fmt.Fprintf(&edge, "%s%d %.1f ", step, x, y)
		fmt.Fprintf(&area, "%s%d %.1f ", step, x, y)
	}
	end(length - 1)
	s.Edge, s.Area = strings.TrimSpace(edge.String()), strings.TrimSpace(area.String())
	return s
}

// share is a piece of the bar that splits a lag by its causes. X and Width are of 100.
type share struct {
	Cause, X, Width, Text string
}

// split is the whole bar; None is said in its place if there is none.
type split struct {
	Shares []share
	None   string
}

// causeWords name the causes.
var causeWords = map[desk.Cause]string{
	desk.CauseFence: "fence", desk.CauseReceiver: "receiver", desk.CauseHalt: "halted", desk.CauseLimit: "limit", desk.CausePause: "paused",
	desk.CauseNobody: "no worker", desk.CauseLock: "lock", desk.CauseBacklog: "backlog", desk.CauseUnknown: "not seen",
}

// newSplit draws what kept the oldest record waiting.
func newSplit(l desk.Line) split {
	switch {
	case l.Waiting == nil:
		return split{None: holdWord(l, "")}
	case l.Waiting.Records == 0:
		return split{None: holdWord(l, "nothing waits")}
	case l.Waiting.Seconds == nil || *l.Waiting.Seconds <= 0 || len(l.Waiting.Split) == 0:
		return split{None: holdWord(l, "")}
	}
	var s split
	at, sum := 0.0, 0.0
	for _, piece := range l.Waiting.Split {
		sum += piece.Seconds
	}
	for _, piece := range l.Waiting.Split {
		width := 0.0
		if sum > 0 {
			width = piece.Seconds / sum * 100
		}
		s.Shares = append(s.Shares, share{string(piece.Cause), fmt.Sprintf("%.1f", at), fmt.Sprintf("%.1f", width), causeWords[piece.Cause] + " " + took(piece.Seconds)})
		at += width
	}
	return s
}

func holdWord(l desk.Line, none string) string {
	if l.Hold != nil {
		return causeWords[l.Hold.Cause]
	}
	return none
}
