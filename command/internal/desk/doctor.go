package desk

import (
	"context"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
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

// reportAge is how old a report may be that answers a question, and examineTimeout bounds an examination.
const (
	reportAge      = time.Minute
	examineTimeout = 2 * time.Minute
)

// doctor keeps the last report.
type doctor struct {
	mu     sync.Mutex // held during an examination: those who ask meanwhile wait for its report
	report *Report
}

// Doctor compares the file with the database. Several who ask at once get one answer, which is at most a minute old.
func (d *Desk) Doctor(ctx context.Context) (Report, error) {
	d.doctor.mu.Lock()
	defer d.doctor.mu.Unlock()
	if r := d.doctor.report; r != nil && time.Since(r.At) < reportAge {
		return *r, nil
	}
	r := Report{At: time.Now().UTC(), Findings: []Finding{}}
	err := d.questionWithin(ctx, examineTimeout, func(ctx context.Context) error {
		findings, err := daemon.Doctor(ctx, d.config.Config.Apart(0))
		for _, f := range findings {
			r.Findings = append(r.Findings, Finding{f.Process, string(f.Severity), visible.Text(f.Problem), visible.Text(f.Fix)})
		}
		return err
	})
	if err == nil {
		d.doctor.report = &r
	}
	return r, err
}
