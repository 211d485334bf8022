package desk

import "context"

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

// TargetKind is how a Target names a place.
type TargetKind string

// How a Target may name a place.
const (
	ToID       TargetKind = "id"       // the record with this id is delivered next
	ToTime     TargetKind = "time"     // the first record created then or later: RFC 3339
	ToPosition TargetKind = "position" // the first record after this position
	ToStart    TargetKind = "start"    // every record again
	ToEnd      TargetKind = "end"      // only records that are stamped from now on
)

// Target is the place to which a Seek goes.
type Target struct {
	Kind  TargetKind `json:"kind"`
	Value string     `json:"value"` // "" for ToStart and ToEnd
}

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

// Preview returns what an order would do. It changes nothing.
func (d *Desk) Preview(_ context.Context, _ Order) (Preview, error) {
	return Preview{}, errNotBuilt
}

// Decide carries out an order that was previewed. It returns an Error of KindMoved, and does nothing, if something
// has changed since.
func (d *Desk) Decide(_ context.Context, _ Order, _ Approval) (Decided, error) {
	return Decided{}, errNotBuilt
}
