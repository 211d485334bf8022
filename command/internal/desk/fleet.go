package desk

import (
	"context"
	"time"
)

// Fleet is what the board shows of all processes.
type Fleet struct {
	// At is when the board looked last; zero if it never could.
	At time.Time `json:"at"`
	// Since is when the memory of the board begins.
	Since time.Time `json:"since"`
	// Problem is why the last look failed; "" if it did not. The lines are those of the look before then.
	Problem string `json:"problem"`
	// Processes are sorted: what needs somebody most comes first, then by name.
	Processes []Line `json:"processes"`
}

// Line is one process of the fleet.
type Line struct {
	Process string `json:"process"`
	// State is one of States.
	State string `json:"state"`
	// Configured reports that the file of this daemon has the process. Of others only the row is known.
	Configured bool `json:"configured"`
	// Table and Sink are those of the file; "" if it does not have the process.
	Table string `json:"table"`
	Sink  string `json:"sink"`

	// Waiting are the records that wait; nil if that is not known.
	Waiting *Waiting `json:"waiting"`
	// Rate is how many records a second are delivered; nil if it is not known yet.
	Rate *float64 `json:"rate"`
	// Spark are the rates of the last minutes, the oldest first, one for each SparkStep. nil is a time in which nobody
	// looked.
	Spark []*float64 `json:"spark"`

	Position string `json:"position"`
	Sequence int64  `json:"sequence,string"`
	Epoch    int64  `json:"epoch,string"`
	// Worker is the last one to deliver; "" before the first.
	Worker string `json:"worker"`
	// MovedAt is the time of the row's last change; nil if there is no row yet.
	MovedAt *time.Time `json:"moved_at"`
	// DeadLetters is the number of open ones; nil if the role may not read them.
	DeadLetters *int64 `json:"dead_letters"`

	// Hold is what holds delivery up; nil if nothing is known that does.
	Hold *Hold `json:"hold"`
	// Need is why the process needs somebody; nil if it does not.
	Need *Need `json:"need"`
	// Notes are what else there is to know, in sentences.
	Notes []string `json:"notes"`
	// LookedAt is when Waiting and Hold were looked at last; nil if they never were. In a large fleet, processes take turns.
	LookedAt *time.Time `json:"looked_at"`
}

// SparkStep is the time of one value of Line.Spark, and SparkLength is how many there are at most.
const (
	SparkStep   = 10 * time.Second
	SparkLength = 60
)

// States are the values of Line.State, as `status` prints them.
func States() []string {
	return []string{"running", "paused", "halted", "failing", "cannot read", "no worker", "new"}
}

// Waiting are records that are committed and not delivered yet.
type Waiting struct {
	Records int64 `json:"records,string"`
	// Capped reports that there are Records or more.
	Capped bool `json:"capped"`
	// Seconds is the age of the oldest; nil if the source has no created_at.
	Seconds *float64 `json:"seconds"`
	// Split are the Seconds by what kept that record waiting, the longest first. The sum is Seconds.
	Split []Share `json:"split"`
}

// Hold is a reason that holds delivery up.
type Hold struct {
	// Kind is one of daemon.HoldKind.
	Kind  string `json:"kind"`
	Cause Cause  `json:"cause"`
	// Text has the reason and the next step.
	Text string `json:"text"`
}

// Need is why a process needs somebody.
type Need struct {
	// Rank sorts needs: 1 is the most urgent.
	Rank int `json:"rank"`
	// Text is a short sentence.
	Text string `json:"text"`
}

// Fleet returns what the board shows of all processes. If nobody watches, it makes a look first.
func (d *Desk) Fleet(_ context.Context) (Fleet, error) { return Fleet{}, errNotBuilt }
