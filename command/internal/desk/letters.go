package desk

import (
	"context"
	"time"
)

// LettersAsk chooses dead letters.
type LettersAsk struct {
	// Process is the only one; "" is all.
	Process string
	// Error is a text that their errors contain; "" is any. It needs Process.
	Error string
	// Resolved includes those that were replayed or discarded.
	Resolved bool
	// Limit is at most MaxLetters; 0 is MaxLetters.
	Limit int
}

// MaxLetters bounds one list of dead letters.
const MaxLetters = 1000

// Letters are dead letters.
type Letters struct {
	// Groups are open dead letters of one process whose errors are alike, the largest group first.
	Groups []Group `json:"groups"`
	// Letters are in the order of their processes and positions.
	Letters []Letter `json:"letters"`
	// More reports that there are more than the list has.
	More bool `json:"more"`
}

// Group are dead letters whose errors are alike.
type Group struct {
	Process string `json:"process"`
	// Pattern is their error, with # in place of numbers and … in place of quoted text.
	Pattern string    `json:"pattern"`
	Class   string    `json:"class"`
	First   time.Time `json:"first_at"`
	Last    time.Time `json:"last_at"`
	// IDs are in the order of their positions.
	IDs []IDText `json:"ids"`
}

// IDText is a number of 64 bits that is a string in JSON.
type IDText int64

// Letter is one dead letter.
type Letter struct {
	ID         int64      `json:"id,string"`
	Process    string     `json:"process"`
	At         time.Time  `json:"at"`
	Sequence   int64      `json:"sequence,string"`
	Record     Record     `json:"record"`
	Failure    Failure    `json:"failure"`
	Resolution string     `json:"resolution"` // open, replayed or discarded
	ResolvedAt *time.Time `json:"resolved_at"`
	ResolvedBy string     `json:"resolved_by"`
	Reason     string     `json:"reason"`
}

// Letters lists dead letters, without headers and payloads.
func (d *Desk) Letters(_ context.Context, _ LettersAsk) (Letters, error) {
	return Letters{}, errNotBuilt
}

// Letter returns one dead letter.
func (d *Desk) Letter(_ context.Context, _ int64, _ Sight) (Letter, error) {
	return Letter{}, errNotBuilt
}
