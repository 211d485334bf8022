package daemon

import (
	"encoding/json"
	"io"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// statusJSON is one process in JSON. Numbers of 64 bits are strings: not every reader of JSON can hold them as
// numbers. Fields may be added, never changed.
type statusJSON struct {
	Process    string       `json:"process"`
	State      string       `json:"state"`
	Position   string       `json:"position"`
	Sequence   int64        `json:"sequence,string"`
	Epoch      int64        `json:"epoch,string"`
	Holder     string       `json:"holder"`
	UpdatedAt  *time.Time   `json:"updated_at"`
	Lag        *lagJSON     `json:"lag"`
	Failure    *failureJSON `json:"failure"`
	HeldBackBy []writerJSON `json:"held_back_by"`
	Hold       *holdJSON    `json:"hold"`
	Also       []holdJSON   `json:"also"` // beside hold
	Problem    string       `json:"problem"`
	// DeadLetters is null if the role may not read them.
	DeadLetters *int64 `json:"dead_letters"`
}

// holdJSON is a reason that holds delivery up, and what to do about it: kind is for programs, the rest for people.
type holdJSON struct {
	Kind HoldKind `json:"kind"`
	Text string   `json:"text"`
	Next string   `json:"next"` // "" if text has it
	SQL  string   `json:"sql"`  // goes with next
}

type lagJSON struct {
	Records int64    `json:"records,string"`
	Capped  bool     `json:"capped"`
	Seconds *float64 `json:"seconds"`
}

type failureJSON struct {
	Position      string    `json:"position"`
	RecordID      string    `json:"record_id"`
	Attempts      int       `json:"attempts"`
	First         time.Time `json:"first_failed_at"`
	Last          time.Time `json:"last_failed_at"`
	NextAttemptIn float64   `json:"next_attempt_in_seconds"`
	Error         string    `json:"error"`
	Permanent     bool      `json:"permanent"`
	Class         string    `json:"class"`
}

type writerJSON struct {
	PID         int        `json:"pid"`
	GID         string     `json:"gid"`
	Application string     `json:"application"`
	User        string     `json:"user"`
	Since       *time.Time `json:"since"`
	Command     string     `json:"command"` // "" if it is not known
}

// PrintStatusJSON writes one line: {"processes": […]}.
func PrintStatusJSON(w io.Writer, all []Status) error {
	document := struct {
		Processes []statusJSON `json:"processes"`
	}{Processes: []statusJSON{}}
	for _, s := range all {
		document.Processes = append(document.Processes, s.json())
	}
	return json.NewEncoder(visible.JSON(w)).Encode(document)
}

func (s Status) json() statusJSON {
	j := statusJSON{
		Process: s.Process, State: s.Word(), Position: string(s.Position), Sequence: s.Sequence, Epoch: int64(s.Epoch),
		Holder: s.Holder, UpdatedAt: known(s.UpdatedAt), HeldBackBy: []writerJSON{}, Also: []holdJSON{}, Problem: s.Problem, DeadLetters: s.DeadLetters,
	}
	if s.Lag != nil {
		j.Lag = &lagJSON{Records: s.Lag.Records, Capped: s.Lag.Records >= table.MaxLagRecords}
		if s.Lag.Age != nil {
			seconds := s.Lag.Age.Seconds()
			j.Lag.Seconds = &seconds
		}
	}
	if f := s.Failure; f != nil {
		j.Failure = &failureJSON{
			Position: string(f.Position), RecordID: f.RecordID, Attempts: f.Attempts, First: f.First, Last: f.Last,
			NextAttemptIn: f.Wait.Seconds(), Error: f.Error, Permanent: f.Class == cursor.ClassPermanent || f.Class == cursor.ClassUnreadable, Class: string(f.Class),
		}
	}
	if s.Hold != nil {
		hold := holdJSON(*s.Hold)
		j.Hold = &hold
	}
	for _, also := range s.Also {
		j.Also = append(j.Also, holdJSON(also))
	}
	for _, writer := range s.Holding {
		j.HeldBackBy = append(j.HeldBackBy, jsonOf(writer))
	}
	return j
}

func jsonOf(w table.Writer) writerJSON {
	return writerJSON{w.PID, w.GID, w.Application, w.User, known(w.Since), w.Command}
}

// known returns nil for a time that is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}
