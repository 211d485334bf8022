package desk

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

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

// doctor keeps the last report, and sees that there is one examination at a time.
type doctor struct {
	examinations singleflight.Group
	last         *Report // only an examination uses it
}

// Doctor compares the file with the database. Those who ask while an examination is under way get its answer, also if it
// failed. A report answers for a minute.
func (d *Desk) Doctor(ctx context.Context) (Report, error) {
	r, err := d.doctor.answer(ctx, d.examine)
	return r, d.failed(err)
}

// answer returns the last report, or that of an examination, which goes on for others when ctx has ended.
func (d *doctor) answer(ctx context.Context, examine func() (Report, error)) (Report, error) {
	answer := d.examinations.DoChan("", func() (any, error) {
		if d.last != nil && time.Since(d.last.At) < reportAge {
			return *d.last, nil
		}
		r, err := examine()
		if err == nil {
			d.last = &r
		}
		return r, err
	})
	select {
	case a := <-answer:
		r, _ := a.Val.(Report)
		return r, a.Err
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
}

// wait returns when no examination is under way.
func (d *doctor) wait() {
	_, _, _ = d.examinations.Do("", func() (any, error) { return Report{}, context.Canceled })
}

// examine makes a report. It has a connection of its own, so it takes no turn of the questions.
func (d *Desk) examine() (Report, error) {
	ctx, cancel := context.WithTimeout(d.ctx, examineTimeout)
	defer cancel()
	r := Report{At: time.Now().UTC(), Findings: []Finding{}}
	findings, err := daemon.Doctor(ctx, d.config.Config.Apart(0))
	for _, f := range findings {
		r.Findings = append(r.Findings, Finding{f.Process, string(f.Severity), visible.Text(f.Problem), visible.Text(f.Fix)})
	}
	return r, err
}
