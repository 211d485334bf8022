package desk

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

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

func (t *Target) target() (daemon.Target, error) {
	if t == nil {
		return nil, wrong("a seek needs a place to go to")
	}
	switch t.Kind {
	case ToID:
		return daemon.ToRecord(t.Value), nil
	case ToPosition:
		return daemon.ToPosition(cursor.Position(t.Value)), nil
	case ToStart:
		return daemon.ToBeginning, nil
	case ToEnd:
		return daemon.ToEnd, nil
	case ToTime:
		at, err := time.Parse(time.RFC3339, t.Value)
		if err != nil {
			return nil, wrong("the time must have a zone, as in 2026-11-20T12:00:00Z or 2026-11-20T12:00:00.123456+01:00")
		}
		return daemon.ToTime(at), nil
	default:
		return nil, wrong("the place of a seek is one of id, time, position, start and end")
	}
}

// wrong is the error of a question that makes no sense.
func wrong(text string) error { return &Error{Kind: KindUsage, Text: text} }

// expected is what Preview.Expect holds, as JSON. It is opaque for viewers.
type expected struct {
	// At is the position that the decision expects, and State the state of the process. A pause and a resume expect only
	// the state: the position of a busy process is another one a moment later.
	At    *cursor.Position `json:"at,omitempty"`
	State string           `json:"state,omitempty"`
	// To is the place of a seek, which an end or a time may not lead to again.
	To *cursor.Position `json:"to,omitempty"`
	// Letters is a digest of the dead letters.
	Letters string `json:"letters,omitempty"`
}

func (e expected) String() string {
	text, _ := json.Marshal(e) // texts alone: this cannot fail
	return string(text)
}

// parseExpected reads what a preview of a verb returned. It must have exactly what such a preview has: with less, a
// decision would compare nothing.
func parseExpected(text string, v Verb) (e expected, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&e) == nil && e.of(v) {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return e, nil
		}
	}
	return expected{}, wrong("expect must be the one that the preview of this " + string(v) + " returned: make a preview first")
}

// of reports whether a preview of a verb can have returned it.
func (e expected) of(v Verb) bool {
	if v == Replay || v == Discard {
		return e == expected{Letters: e.Letters} && e.Letters != ""
	}
	if e.Letters != "" || (e.To != nil) != (v == Seek) {
		return false
	}
	if v == Pause || v == Resume {
		return e.At == nil && e.State != ""
	}
	return e.At != nil && e.State == "" || e.At == nil && e.State == stateNew
}

// stateNew is the state of a process that has no row yet.
const stateNew = "new"
