package live

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// stage is how far a dialog is.
type stage int

const (
	rehearsing stage = iota // the dry run is on its way
	asking                  // its result is shown, and the reason is asked for
	deciding                // the decision is on its way
	told                    // its result is shown, or an error
)

// dialog is a decision about a process.
type dialog struct {
	ctx     context.Context
	cancel  context.CancelFunc
	backend Backend
	verb    Verb
	process string
	stage   stage
	outcome daemon.Outcome // of the dry run, and then of the decision
	err     error
	reason  string
	missing bool // it was asked for, and nothing was typed
}

// outcomeMsg is the answer to a decision of a dialog.
type outcomeMsg struct {
	of      *dialog
	outcome daemon.Outcome
	err     error
}

// newDialog rehearses a decision.
func newDialog(ctx context.Context, backend Backend, v Verb, process string) (*dialog, tea.Cmd) {
	d := &dialog{backend: backend, verb: v, process: process}
	d.ctx, d.cancel = context.WithCancel(ctx)
	return d, d.decide(cursor.Decision{DryRun: true})
}

func (d *dialog) decide(decision cursor.Decision) tea.Cmd {
	decision.Actor = d.backend.Actor
	return guarded(func() tea.Msg {
		outcome, err := d.backend.Decide(d.ctx, d.verb, d.process, decision)
		return outcomeMsg{d, outcome, err}
	})
}

// answered takes the result of the dry run or of the decision.
func (d *dialog) answered(msg outcomeMsg) {
	if msg.of != d {
		return // of a dialog that was left
	}
	d.outcome, d.err = msg.outcome, msg.err
	if d.stage == rehearsing && d.err == nil && d.outcome.Changed {
		d.stage = asking
		return
	}
	d.stage = told
}

// pressed takes a key. It reports whether the dialog is over.
func (d *dialog) pressed(key tea.KeyPressMsg) (cmd tea.Cmd, done bool) {
	switch name := key.String(); {
	case d.stage == deciding: // it may be done already: its answer is waited for
	case name == "esc" || d.stage == told:
		d.cancel()
		return nil, true
	case d.stage != asking:
	case name == "enter" && strings.TrimSpace(d.reason) == "":
		d.missing = true
	case name == "enter":
		d.stage = deciding
		return d.decide(d.decision()), false
	case name == "backspace":
		_, size := utf8.DecodeLastRuneInString(d.reason)
		d.reason = d.reason[:len(d.reason)-size]
	case name == "ctrl+u":
		d.reason = ""
	default:
		d.write(key.Text)
	}
	return nil, false
}

// decision is what was rehearsed. A retry expects the record that the dry run saw. A pause and a resume do the same to any
// record, and a busy process is at another one when the reason is typed.
func (d *dialog) decision() cursor.Decision {
	decision := cursor.Decision{Reason: strings.TrimSpace(d.reason)}
	if d.verb == Retry {
		decision.Expect = &d.outcome.Expect
	}
	return decision
}

// write adds typed or pasted text to the reason.
func (d *dialog) write(text string) {
	text = typed(text)
	if d.stage == asking && len(d.reason)+len(text) <= maxReason {
		d.reason += text
	}
}

// maxReason bounds the reason, in bytes.
const maxReason = 400

// lines returns the text of the dialog, for a page of this width.
func (d *dialog) lines(page screen.Page) []string {
	title := page.Paint(screen.Bold, string(d.verb)+" "+visible.Line(d.process))
	lines := []string{title, ""}
	say := func(text string) { lines = append(lines, folded(text, page.Width)...) }
	switch d.stage {
	case rehearsing:
		say("asking the database what would be done …")
		return append(lines, "", "esc back")
	case asking:
		say("dry run: " + visible.Inline(d.outcome.Text))
		if r := d.outcome.Records; r != nil && r.Total > 0 {
			say("records: " + d.outcome.Total())
		}
		lines = append(lines, "")
		say("reason: " + d.reason + "█")
		if d.missing && strings.TrimSpace(d.reason) == "" {
			say("the reason is missing: the history keeps it")
		}
		return append(lines, "", "enter do it   esc leave it, nothing is changed")
	case deciding:
		say("waiting for the worker's next checkpoint, or for half a minute …")
		return append(lines, "")
	}
	switch {
	case errors.Is(d.err, cursor.ErrUncertain):
		say(page.Paint(screen.Red, "not known whether it is done: ") + plain(d.err))
	case d.err != nil:
		say(page.Paint(screen.Red, "not done: ") + plain(d.err))
	default:
		say(visible.Inline(d.outcome.Text))
	}
	return append(lines, "", "any key: back")
}

// folded returns a text as lines.
func folded(text string, width int) []string {
	return strings.Split(fold.Text(text, width, "  "), "\n")
}

// typed returns what a key adds to a text. A paste may have hidden characters.
func typed(text string) string {
	return strings.Map(func(r rune) rune {
		if visible.Hidden(r) {
			return -1
		}
		return r
	}, text)
}
