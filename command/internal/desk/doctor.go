package desk

import (
	"context"
	"time"
)

// Report is what the doctor found.
type Report struct {
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"`
}

// Finding is a disagreement between the file and the database.
type Finding struct {
	// Process is "" for a finding about the database.
	Process string `json:"process"`
	// Severity is error, warning or note.
	Severity string `json:"severity"`
	Problem  string `json:"problem"`
	// Fix is the next step, often SQL.
	Fix string `json:"fix"`
}

// Doctor compares the file with the database. Several who ask at once get one answer, which is at most a minute old.
func (d *Desk) Doctor(_ context.Context) (Report, error) {
	return Report{}, errNotBuilt
}
