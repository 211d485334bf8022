package desk

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Sight is how much of a record a viewer may see.
type Sight int

// The sights.
const (
	// Masked hides headers and payload.
	Masked Sight = iota
	// Full shows everything.
	Full
)

// Record is a record of a source.
type Record struct {
	Position  string     `json:"position"`
	Table     string     `json:"table"`
	ID        string     `json:"id"`
	Key       string     `json:"key"`
	Type      string     `json:"type"`
	CreatedAt *time.Time `json:"created_at"`
	DedupKey  string     `json:"dedup_key"`
	// Headers and Payload are empty if they are Masked.
	Headers map[string]string `json:"headers"`
	// Payload is cut after MaxPayload bytes: Cut reports that.
	Payload string `json:"payload"`
	Cut     bool   `json:"cut"`
	// PayloadBytes is the size of the payload; nil if there is none, or if it was not read, as in a list of dead letters.
	PayloadBytes *int64 `json:"payload_bytes"`
	// Masked reports that headers and payload are left out, because the viewer may not see them or the answer never has
	// them. Withheld reports that the role of the database may not read them.
	Masked   bool `json:"masked"`
	Withheld bool `json:"withheld"`
	// Fault is why the source could not read the record; "" if it could.
	Fault string `json:"fault"`
}

// MaxPayload bounds the payload of one record.
const MaxPayload = 64 << 10

// Failure is what went wrong with a record.
type Failure struct {
	RecordID string    `json:"record_id"`
	Position string    `json:"position"`
	Attempts int       `json:"attempts"`
	First    time.Time `json:"first_failed_at"`
	Last     time.Time `json:"last_failed_at"`
	// NextIn is in how many seconds the next attempt comes; 0 if it is due.
	NextIn float64 `json:"next_attempt_in_seconds"`
	// Error is what the receiver said.
	Error string `json:"error"`
	// Class is the class of the error, as cursor.Class has it.
	Class string `json:"class"`
	// Permanent reports that no worker tries the record again by itself.
	Permanent bool `json:"permanent"`
}

func failureOf(f cursor.Failure) Failure {
	return Failure{
		RecordID: f.RecordID, Position: string(f.Position), Attempts: f.Attempts, First: f.First.UTC(), Last: f.Last.UTC(), NextIn: f.Wait.Seconds(),
		Error: visible.Inline(f.Error), Class: string(f.Class), Permanent: f.Class == cursor.ClassPermanent || f.Class == cursor.ClassUnreadable,
	}
}

// recordOf converts a record.
func recordOf(s table.Shown, row cursor.Row) Record {
	delivery := processor.Delivery{Record: s.Record}
	delivery.History, _ = row.Histories.At(s.Position) // histories that cannot be read are reported by the worker
	r := Record{
		Position: string(s.Position), Table: s.Table, ID: s.ID, Key: s.Key, Type: s.Type, DedupKey: delivery.DedupKey(),
		Headers: s.Headers, Payload: string(s.Payload), Cut: s.Cut(), Withheld: s.Withheld,
	}
	if s.Bytes > 0 {
		r.PayloadBytes = &s.Bytes
	}
	if !s.CreatedAt.IsZero() {
		at := s.CreatedAt
		r.CreatedAt = &at
	}
	return r
}

// masked leaves out the contents of a record. Its key may name a person, and stays: one looks for records by it.
func masked(r Record) Record {
	r.Headers, r.Payload, r.Cut, r.Masked = nil, "", false, true
	return r
}

// seen is a record as a viewer may see it.
func (s Sight) seen(r Record) Record {
	if s == Full {
		return r
	}
	return masked(r)
}
