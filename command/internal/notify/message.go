package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Event is the reason for an alarm.
type Event string

// The events. Recovery is no event of its own: it is the end of each of the others.
const (
	Halt        Event = "halt"
	Lag         Event = "lag"
	DeadLetters Event = "dead_letters"
)

// Recovery is the word in Target.Events for the end of an alarm.
const Recovery = "recovery"

// Events returns all events.
func Events() []Event { return []Event{Halt, Lag, DeadLetters} }

// Status is where an alarm stands.
type Status string

// The statuses.
const (
	Raised    Status = "raised"
	Reminded  Status = "reminded"
	Recovered Status = "recovered"
)

// Alarm is what a message has about one process.
type Alarm struct {
	// ID is the same if this alarm is sent again because the first outcome was not known.
	ID      string `json:"id"`
	Process string `json:"process"`
	Event   Event  `json:"event"`
	Status  Status `json:"status"`
	// Since is when it began, by the database's clock.
	Since time.Time `json:"since"`
	// State is the state of the process: running, paused or halted.
	State string `json:"state"`
	// Class is the class of the error of a halt, or of the failing record; "" without one.
	Class string `json:"class,omitempty"`
	// Attempts counts those of the failing record.
	Attempts int `json:"attempts,omitempty"`
	// LagSeconds is the age of the oldest record that waits, and ObjectiveSeconds what it should not exceed. WaitingRecords
	// counts those that wait, up to 100,000.
	LagSeconds       float64 `json:"lag_seconds,omitempty"`
	ObjectiveSeconds float64 `json:"objective_seconds,omitempty"`
	WaitingRecords   int64   `json:"waiting_records,omitempty"`
	// OpenDeadLetters counts those that are neither replayed nor discarded, up to 100,000.
	OpenDeadLetters int64 `json:"open_dead_letters,omitempty"`
	// Next is the command to run next.
	Next string `json:"next,omitempty"`
	// Runbook is the address of a page about this event; "" if there is none.
	Runbook string `json:"runbook,omitempty"`
}

// Message is what a target gets at once.
type Message struct {
	// ID is the same if the same alarms are sent again.
	ID string `json:"id"`
	// At is when it was made, by the database's clock.
	At time.Time `json:"at"`
	// Worker is the one that sends it.
	Worker string `json:"worker"`
	// Console is the address of the console; "" if it is not known.
	Console string `json:"console,omitempty"`
	// Test marks a message that only tries its target.
	Test bool `json:"test,omitempty"`
	// Alarms are in the order of their importance.
	Alarms []Alarm `json:"alarms"`
}

// The types of the JSON form, as Standard Webhooks proposes them.
const (
	alarmType = "ordered_dispatcher.alarm"
	testType  = "ordered_dispatcher.test"
)

// JSON returns the message for programs.
func (m Message) JSON() ([]byte, error) {
	kind := alarmType
	if m.Test {
		kind = testType
	}
	if m.Alarms == nil {
		m.Alarms = []Alarm{}
	}
	return json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      Message   `json:"data"`
	}{kind, m.At.UTC(), m})
}

// maxShown is how many alarms a text for people has. The JSON form has all.
const maxShown = 20

// Subject returns the message in one line.
func (m Message) Subject() string {
	switch len(m.Alarms) {
	case 0:
		return "ordered-dispatcher: a test message"
	case 1:
		return "ordered-dispatcher: " + m.Alarms[0].headline()
	}
	raised := 0
	for _, a := range m.Alarms {
		if a.Status != Recovered {
			raised++
		}
	}
	switch recovered := len(m.Alarms) - raised; {
	case recovered == 0:
		return fmt.Sprintf("ordered-dispatcher: %d alarms", raised)
	case raised == 0:
		return fmt.Sprintf("ordered-dispatcher: %d recovered", recovered)
	default:
		return fmt.Sprintf("ordered-dispatcher: %d alarms, %d recovered", raised, recovered)
	}
}

// Text returns the message for people, in lines.
func (m Message) Text() string {
	var b strings.Builder
	if m.Test {
		b.WriteString("This message tries whether it arrives. Nothing is wrong.\n")
	}
	for i, a := range m.Alarms[:min(len(m.Alarms), maxShown)] {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, line := range a.lines() {
			b.WriteString(line + "\n")
		}
	}
	if more := len(m.Alarms) - maxShown; more > 0 {
		fmt.Fprintf(&b, "\nand %d more: ordered-dispatcher status shows them\n", more)
	}
	if m.Console != "" {
		b.WriteString("\n" + consoleLine + m.Console + "\n")
	}
	return b.String()
}

// isLink reports whether a line of the Text is an address of ours. No name has a line of its own.
func (m Message) isLink(line string) bool {
	return m.Console != "" && line == consoleLine+m.Console ||
		slices.ContainsFunc(m.Alarms, func(a Alarm) bool { return a.Runbook != "" && line == runbookLine+a.Runbook })
}

// The beginnings of lines with an address.
const (
	consoleLine = "Console: "
	runbookLine = "Runbook: "
)

// headline is the alarm in a few words.
func (a Alarm) headline() string {
	name := visible.Inline(a.Process)
	switch {
	case a.Event == Halt && a.Status == Recovered:
		return name + " is no longer halted"
	case a.Event == Halt && a.Status == Reminded:
		return name + " is still halted"
	case a.Event == Halt:
		return name + " is halted"
	case a.Event == Lag && a.Status == Recovered:
		return name + " has caught up"
	case a.Event == Lag && a.Status == Reminded:
		return name + " is still behind"
	case a.Event == Lag:
		return name + " is behind"
	case a.Status == Recovered:
		return name + " has no open dead letters any more"
	case a.Status == Reminded:
		return name + " still has open dead letters"
	default:
		return name + " has open dead letters"
	}
}

// lines are the alarm with its details.
func (a Alarm) lines() []string {
	since := a.Since.UTC().Format("2006-01-02 15:04:05 MST")
	if a.Status == Recovered {
		return []string{a.headline() + ", after the alarm of " + since, "It is " + a.State + " now."}
	}
	lines := append([]string{a.headline() + " (since " + since + ")"}, a.details()...)
	if a.Next != "" {
		lines = append(lines, "Next: "+a.Next)
	}
	if a.Runbook != "" {
		lines = append(lines, runbookLine+a.Runbook)
	}
	return lines
}

func (a Alarm) details() []string {
	switch a.Event {
	case Halt:
		return []string{
			fmt.Sprintf("Cause: %s (class %s, after %s).", Cause(a.Class), a.Class, quantity.Of(a.Attempts, "attempt")),
			"Nothing after that record is delivered until someone decides.",
		}
	case Lag:
		lines := []string{fmt.Sprintf("The oldest record that waits is %s old, and the objective is %s. Waiting: %s.",
			seconds(a.LagSeconds), seconds(a.ObjectiveSeconds), quantity.Of(a.WaitingRecords, "record"))}
		switch {
		case a.State == "paused":
			lines = append(lines, "The process is paused by an operator.")
		case a.Class != "":
			lines = append(lines, fmt.Sprintf("The next record fails: %s (class %s, %s).", Cause(a.Class), a.Class, quantity.Of(a.Attempts, "attempt")))
		}
		return lines
	default:
		return []string{fmt.Sprintf("Open: %s. They were not delivered.", quantity.Of(a.OpenDeadLetters, "dead letter"))}
	}
}

// causes describe the classes of errors.
var causes = map[string]string{
	"permanent":   "the receiver rejected the record for good",
	"transient":   "the receiver fails, and the attempts are used up",
	"unreached":   "the receiver cannot be reached",
	"refused":     "the receiver refuses the credentials, the address or the settings",
	"unknown":     "the outcome is not known, since no answer came in time",
	"unreadable":  "the source cannot read the record",
	"restored":    "the database was restored",
	"old_primary": "the server is a former primary",
	"clock":       "the clock of the server went back",
	"reset":       "the ids of the table began again",
	"database":    "the database fails",
}

// Cause describes a class of errors.
func Cause(class string) string {
	if text, ok := causes[class]; ok {
		return text
	}
	return "a cause that status shows"
}

func seconds(s float64) time.Duration {
	return (time.Duration(s*1000) * time.Millisecond).Round(time.Second)
}

// Sort puts the alarms in the order of their importance: halts first, and recoveries last.
func Sort(alarms []Alarm) {
	order := func(a Alarm) int {
		at := slices.Index(Events(), a.Event)
		if a.Status == Recovered {
			at += len(Events())
		}
		return at
	}
	slices.SortStableFunc(alarms, func(a, b Alarm) int {
		if by := order(a) - order(b); by != 0 {
			return by
		}
		return strings.Compare(a.Process, b.Process)
	})
}
