package desk

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Verb is what an operator may decide.
type Verb string

// The verbs.
const (
	Retry  Verb = "retry"
	Skip   Verb = "skip"
	Seek   Verb = "seek"
	Pause  Verb = "pause"
	Resume Verb = "resume"
	// Replay and Discard are about dead letters.
	Replay  Verb = "replay"
	Discard Verb = "discard"
)

// Verbs lists all verbs.
func Verbs() []Verb { return []Verb{Retry, Skip, Seek, Pause, Resume, Replay, Discard} }

// NeedsReason reports whether the verb can lose records, so that a reason is required.
func (v Verb) NeedsReason() bool { return v == Skip || v == Seek || v == Discard }

// Order is what an operator wants to be done.
type Order struct {
	Verb    Verb   `json:"verb"`
	Process string `json:"process"`
	// To is for Seek alone.
	To *Target `json:"to,omitempty"`
	// Fenced asserts that this server is the only primary. For Retry and Seek, where a process halted on what may be an
	// old primary.
	Fenced bool `json:"fenced,omitempty"`
	// Pruned allows a Seek to a place although retention has removed rows after it.
	Pruned bool `json:"pruned,omitempty"`
	// Letters are the ids of dead letters of one process, for Replay and Discard. They are decided about in the order of
	// their positions.
	Letters []IDText `json:"letters,omitempty"`
	// Error chooses the open dead letters of Process whose error contains it. AllLetters chooses all of them.
	Error      string `json:"error,omitempty"`
	AllLetters bool   `json:"all_letters,omitempty"`
}

// Preview is what an Order would do now.
type Preview struct {
	Order Order `json:"order"`
	// Text says it in sentences.
	Text string `json:"text"`
	// Changes is false if there is nothing to do.
	Changes bool `json:"changes"`
	// Records are the first of those that it would send again, pass over or decide about. They have no payload.
	Records []Record `json:"records"`
	// Total is how many there are, and Capped reports that there are that many or more.
	Total  int64 `json:"total,string"`
	Capped bool  `json:"capped"`
	// Problem is why the records are not known; "" if they are.
	Problem string `json:"problem"`
	// Expect goes back with Approval. If something else is true by then, nothing is done.
	Expect string `json:"expect"`
	// NeedsReason reports that Approval needs a Reason.
	NeedsReason bool `json:"needs_reason"`
}

// Approval is what an operator adds to an Order after the Preview.
type Approval struct {
	Reason string `json:"reason"`
	// Expect is the one of the Preview. Required.
	Expect string `json:"expect"`
	// Actor is who decides, for the audit. Required.
	Actor string `json:"-"`
}

// Decided is what was done.
type Decided struct {
	Text    string `json:"text"`
	Changed bool   `json:"changed"`
	// Done and Failed are about dead letters: how many were decided about in order, and why it stopped; "" if it did not.
	Done   int    `json:"done"`
	Failed string `json:"failed"`
}

// decideTimeout bounds a decision, and rowTimeout how long it waits for the row of the process.
const (
	decideTimeout = 5 * time.Minute
	rowTimeout    = 20 * time.Second
)

// maxReason bounds a reason.
const maxReason = 2000

// Preview returns what an order would do. It changes nothing.
func (d *Desk) Preview(ctx context.Context, o Order) (p Preview, err error) {
	if err := o.check(); err != nil {
		return Preview{}, err
	}
	err = d.taken(ctx, d.decisions, questionTimeout, func(ctx context.Context) error {
		if o.aboutLetters() {
			p, err = d.previewLetters(ctx, o)
			return err
		}
		outcome, err := d.operate(ctx, o, cursor.Decision{Actor: "preview", Reason: "preview", DryRun: true, Timeout: rowTimeout})
		if err != nil {
			return err
		}
		p = previewOf(outcome)
		p.Records = d.withKeys(ctx, o.Process, outcome, p.Records)
		p.Expect = o.expect(outcome).String()
		return nil
	})
	p.Order, p.NeedsReason = o, o.Verb.NeedsReason()
	if p.Records == nil {
		p.Records = []Record{}
	}
	return p, err
}

// Decide carries out an order that was previewed. It returns an Error of KindMoved, and does nothing, if something
// has changed since. It goes on when ctx has ended: a client that is gone must not leave half of a decision.
func (d *Desk) Decide(ctx context.Context, o Order, a Approval) (done Decided, err error) {
	if err := o.check(); err != nil {
		return Decided{}, err
	}
	expect, err := a.check(o.Verb)
	if err != nil {
		return Decided{}, err
	}
	err = d.taken(context.WithoutCancel(ctx), d.decisions, decideTimeout, func(ctx context.Context) error {
		decision := cursor.Decision{Actor: a.Actor, Reason: strings.TrimSpace(a.Reason), Timeout: rowTimeout}
		if o.aboutLetters() {
			done, err = d.decideLetters(ctx, o, decision, expect)
			return err
		}
		done, err = d.decideOne(ctx, o, decision, expect)
		return err
	})
	d.board.nudge(o.Process)
	if err == nil {
		d.config.Logger.Info("an operator decided in the console", "process", o.Process, "verb", string(o.Verb), "actor", a.Actor, "changed", done.Changed)
	}
	return done, err
}

func (d *Desk) decideOne(ctx context.Context, o Order, decision cursor.Decision, expect expected) (Decided, error) {
	if expect.State != "" {
		dry := decision
		dry.DryRun = true
		now, err := d.operate(ctx, o, dry)
		if err != nil {
			return Decided{}, err
		}
		if is := o.expect(now).State; is != expect.State {
			return Decided{}, &Error{Kind: KindMoved, Text: "the process is " + is + " now, and was " + expect.State + " in the preview: nothing was changed"}
		}
	}
	decision.Expect = expect.At
	if o.Verb == Seek {
		o.To = &Target{Kind: ToPosition, Value: string(*expect.To)}
	}
	outcome, err := d.operate(ctx, o, decision)
	if err != nil {
		return Decided{}, err
	}
	return Decided{Text: visible.Inline(outcome.Text), Changed: outcome.Changed}, nil
}

// operate carries out an order about a cursor, or rehearses it.
func (d *Desk) operate(ctx context.Context, o Order, decision cursor.Decision) (daemon.Outcome, error) {
	config := d.config.Config.Apart(decisionConns)
	if !d.knows(o.Process) {
		config.Processes = nil // every cursor of the schema, without what needs its source
	}
	operator, err := daemon.NewOperator(ctx, config, o.Process)
	if err != nil {
		return daemon.Outcome{}, err
	}
	defer operator.Close()
	decision.Fenced, decision.Pruned = o.Fenced, o.Pruned
	switch o.Verb {
	case Retry:
		return operator.Retry(ctx, decision)
	case Skip:
		return operator.Skip(ctx, decision)
	case Pause:
		return operator.Pause(ctx, decision)
	case Resume:
		return operator.Resume(ctx, decision)
	}
	to, err := o.To.target()
	if err != nil {
		return daemon.Outcome{}, err
	}
	return operator.Seek(ctx, to, decision)
}

// expect is what must still be true when the order is carried out.
func (o Order) expect(outcome daemon.Outcome) expected {
	before, to := outcome.Before, outcome.After.Position
	var e expected
	switch {
	case before.UpdatedAt.IsZero():
		e.State = stateNew
	case o.Verb == Pause || o.Verb == Resume:
		e.State = string(before.State)
	default:
		e.At = &outcome.Expect
	}
	if o.Verb == Seek {
		e.To = &to
	}
	return e
}

func previewOf(outcome daemon.Outcome) Preview {
	p := Preview{Text: visible.Inline(outcome.Text), Changes: outcome.Changed, Problem: visible.Inline(outcome.Problem)}
	if span := outcome.Records; span != nil {
		for _, r := range span.Records {
			p.Records = append(p.Records, masked(recordOf(table.Shown{Record: r}, outcome.Before)))
		}
		p.Total, p.Capped = span.Total, span.Total >= table.MaxLagRecords
	}
	return p
}

// withKeys adds keys and types to the records of a preview: those of an outcome have none. Without the file, where the
// role may not read them, or while too many questions are being answered, the records stay as they are.
func (d *Desk) withKeys(ctx context.Context, process string, outcome daemon.Outcome, records []Record) []Record {
	source, err := d.asking.Source(process)
	if err != nil || source == nil || len(records) == 0 {
		return records
	}
	after := min(outcome.Before.Position, outcome.After.Position)
	if outcome.Before.Position == cursor.Unplaced {
		after = ""
	}
	var shown []table.Shown
	err = d.question(ctx, func(ctx context.Context) (err error) {
		shown, err = source.Peek(ctx, after, len(records), 0)
		return err
	})
	if err != nil {
		return records
	}
	for i, r := range records {
		if at := slices.IndexFunc(shown, func(s table.Shown) bool { return string(s.Position) == r.Position }); at >= 0 {
			records[i] = masked(recordOf(shown[at], outcome.Before))
		}
	}
	return records
}

// check returns what is wrong with an order.
func (o Order) check() error {
	switch {
	case !slices.Contains(Verbs(), o.Verb):
		return wrong("there is no such decision: there are retry, skip, seek, pause, resume, replay and discard")
	case o.Process == "":
		return wrong("name the process")
	case o.Verb == Seek:
		_, err := o.To.target()
		return err
	case o.To != nil:
		return wrong("only a seek goes to a place")
	case o.aboutLetters():
		return o.checkLetters()
	case len(o.Letters) > 0 || o.AllLetters || o.Error != "":
		return wrong("only replay and discard are about dead letters")
	default:
		return nil
	}
}

// check returns what is wrong with an approval, and what it expects.
func (a Approval) check(v Verb) (expected, error) {
	switch reason := strings.TrimSpace(a.Reason); {
	case a.Actor == "":
		return expected{}, wrong("it is not known who decides")
	case reason == "" && v.NeedsReason():
		return expected{}, wrong("a reason is missing: the audit keeps it")
	case len(reason) > maxReason:
		return expected{}, wrong("the reason is too long: write at most 2000 bytes")
	}
	return parseExpected(a.Expect, v)
}
