package desk

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Need is why a process needs somebody.
type Need struct {
	// Rank sorts needs: 1 is the most urgent.
	Rank int `json:"rank"`
	// Text is a short sentence.
	Text string `json:"text"`
}

// The ranks of needs.
const (
	rankHalted = iota + 1
	rankUnread
	rankNobody
	rankFailing
	rankLocked
	rankFence
	rankReceiver
	rankLetters
	rankPaused
	rankLate
	rankNew
	maxRank
)

const (
	longFence = time.Minute     // that a transaction may hold records back
	late      = 5 * time.Minute // that a record may wait
	manyTries = 3               // of a record, before somebody should look
)

// need is why the process needs somebody; nil if it does not.
func (m *memory) need(l Line) *Need {
	waits := l.Waiting != nil && l.Waiting.Records > 0
	f := m.row.Failure
	switch {
	case m.cause == CauseHalt && (f == nil || f.RecordID == ""):
		return &Need{rankHalted, "it is halted, and waits for a decision"}
	case m.cause == CauseHalt:
		return &Need{rankHalted, fmt.Sprintf("it is halted at record %s", visible.Short(f.RecordID))}
	case l.State == "cannot read":
		return &Need{rankUnread, "its source cannot be read"}
	case (m.cause == CauseNobody || l.State == "no worker") && (waits || f != nil):
		return &Need{rankNobody, "no worker runs it, and records wait"}
	case m.row.State == cursor.Running && f != nil && f.Attempts >= manyTries:
		return &Need{rankFailing, fmt.Sprintf("record %s fails: %s", visible.Short(f.RecordID), f.Tries())}
	case m.cause == CauseLock:
		return &Need{rankLocked, "another session has locked it"}
	case m.cause == CauseFence && waits && m.heldFor() >= longFence:
		return &Need{rankFence, fmt.Sprintf("an open transaction has held records back for %v", m.heldFor().Round(time.Second))}
	case m.cause == CauseReceiver && f == nil:
		return &Need{rankReceiver, "a call of its receiver takes long"}
	case l.DeadLetters != nil && *l.DeadLetters == 1:
		return &Need{rankLetters, "1 dead letter is open"}
	case l.DeadLetters != nil && *l.DeadLetters > 1:
		return &Need{rankLetters, fmt.Sprintf("%d dead letters are open", *l.DeadLetters)}
	case m.cause == CausePause && waits:
		return &Need{rankPaused, "it is paused, and records wait"}
	case waits && l.Waiting.Seconds != nil && *l.Waiting.Seconds >= late.Seconds():
		return &Need{rankLate, fmt.Sprintf("a record has waited for %v", time.Duration(*l.Waiting.Seconds*float64(time.Second)).Round(time.Second))}
	case l.State == "new":
		return &Need{rankNew, "it has not run yet"}
	default:
		return nil
	}
}

// causeOf is the cause of the hold that a need is about. Other needs are about no hold.
var causeOf = map[int]Cause{
	rankHalted: CauseHalt, rankNobody: CauseNobody, rankFailing: CauseReceiver, rankLocked: CauseLock, rankFence: CauseFence, rankReceiver: CauseReceiver, rankPaused: CausePause,
}

// Why is why the process needs somebody, each thing once: the hold says all that a need about it does. It is empty if the
// process needs nobody.
func (l Line) Why() []string {
	switch {
	case l.Need == nil:
		return nil
	case l.Hold == nil:
		return []string{l.Need.Text}
	case causeOf[l.Need.Rank] == l.Hold.Cause:
		return []string{l.Hold.Text}
	default:
		return []string{l.Need.Text, l.Hold.Text}
	}
}

// heldFor is how long what holds the process up has done so.
func (m *memory) heldFor() time.Duration {
	if n := len(m.spans); n > 0 && m.spans[n-1].Open {
		return m.spans[n-1].To.Sub(m.spans[n-1].From)
	}
	return 0
}
