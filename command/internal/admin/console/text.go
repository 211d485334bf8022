package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// long is a text that others wrote. Full is "" if Short is all of it.
type long struct {
	ID, Short, Full string
}

// newLong cuts a text. id tells apart the texts of a page, so that one that is open stays so when its part is replaced.
func newLong(id, text string) long {
	line := visible.Inline(strings.TrimRight(text, "\n"))
	short := visible.Inline(visible.Cut(text))
	if !strings.Contains(strings.TrimRight(text, "\n"), "\n") && short == line {
		return long{Short: line}
	}
	if strings.Contains(text, "\n") {
		first, _, _ := strings.Cut(text, "\n")
		short = visible.Inline(visible.Start(first, 160)) + " …"
	}
	return long{ID: id, Short: short, Full: visible.Text(text)}
}

// sentence shows a text of the desk, in which names are that others gave.
func sentence(text string) string { return visible.Inline(visible.Start(text, 2000)) }

// words are a piece of a sentence. Code is a command, which the desk writes between backquotes.
type words struct {
	Text string
	Code bool
}

// newProse splits a sentence of the desk into words and commands.
func newProse(text string) []words {
	var all []words
	for i, piece := range strings.Split(sentence(text), "`") {
		if piece != "" {
			all = append(all, words{piece, i%2 == 1})
		}
	}
	return all
}

// nextStep splits what to do into words and the SQL after them; "" if there is none.
func nextStep(text string) (before, sql string) {
	if at := strings.Index(text, ": SELECT "); at >= 0 {
		return text[:at], text[at+2:]
	}
	return text, ""
}

// fact is a name with a value.
type fact struct {
	Name  string
	Value long
	Mono  bool
}

func said(name, value string) fact {
	return fact{Name: name, Value: newLong("fact-"+htmlID(name), value)}
}

func written(name, value string) fact {
	f := said(name, value)
	f.Mono = true
	return f
}

// moment is a time, for people and for programs.
type moment struct {
	Known         bool
	Text, Machine string
}

func newMoment(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.UTC()
	layout := "2 Jan 15:04:05"
	if t.Year() != time.Now().UTC().Year() {
		layout = "2 Jan 2006 15:04"
	}
	return moment{true, t.Format(layout), t.Format(time.RFC3339)}
}

func momentOf(t *time.Time) moment {
	if t == nil {
		return moment{}
	}
	return newMoment(*t)
}

// took writes a number of seconds in one unit.
func took(seconds float64) string {
	switch {
	case seconds < 0.95:
		return "under 1 s"
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 100*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f h", seconds/3600)
	default:
		return fmt.Sprintf("%.0f d", seconds/86400)
	}
}

// count writes a whole number with a thin space between thousands.
func count(n int64) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// counted writes a number with its noun.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// pace writes a rate.
func pace(rate float64) string {
	switch {
	case rate == 0:
		return "0 /s"
	case rate < 0.095:
		return fmt.Sprintf("%.1f /min", rate*60)
	case rate < 9.95:
		return fmt.Sprintf("%.1f /s", rate)
	default:
		return count(int64(math.Round(rate))) + " /s"
	}
}

// htmlID makes an id of an element from any text.
func htmlID(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:6])
}

// standing is a word with a colour.
type standing struct{ Word, Tone string }

// tones are the colours of states, of findings and of records. Others are idle.
var tones = map[string]string{
	"running": "ok", "paused": "idle", "halted": "bad", "failing": "warn", "cannot read": "bad", "no worker": "bad", "new": "idle",
	"error": "bad", "warning": "warn", "note": "idle",
	"open": "bad", "replayed": "ok", "discarded": "idle",
	"delivered": "ok", "dead letter": "bad", "next": "warn", "fenced": "warn", "put aside": "bad",
}

func newStanding(word string) standing {
	tone, ok := tones[word]
	if !ok {
		tone = "idle"
	}
	return standing{visible.Line(word), tone}
}
