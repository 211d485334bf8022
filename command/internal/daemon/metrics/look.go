package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Look is what the database and the fence reported of a process at one moment.
type Look struct {
	// Asked is when the question was sent, by this machine's clock. The following fields are not older.
	Asked time.Time
	// Now is the moment of the answer, by the database's clock.
	Now time.Time
	// Row is the process's row.
	Row cursor.Row
	// Leads is Leader if the row names this worker as the last one to deliver.
	Leads Leads
	// Held is the state of this worker's fence when it last read.
	Held table.Held
}

// Leads is the relation of a worker to the one that a row names.
type Leads string

// The values of Leads.
const (
	Leader Leads = "leader"
	Other  Leads = "" // or no worker, before the first delivery
)

// lookVectors are the gauges that a look sets. A gauge whose value is not known yet does not exist.
type lookVectors struct {
	sequence, epoch, leads, paused, halted, deadLetters, lagRecords, lagSeconds, headAge, fenceLag, at *prometheus.GaugeVec
}

func newLookVectors(f factory) lookVectors {
	return lookVectors{
		sequence: f.gauge("sequence", "Records that all workers of the process have delivered since its cursor was made."),
		epoch:    f.gauge("epoch", "Epoch of the process: it grows with every change of worker."),
		leads: f.gauge("leads", "1 if this worker is the one that the cursor names, which delivered last, else 0. "+
			"The sum over all workers is 1."),
		paused: f.gauge("paused", "1 if the process is paused by an operator, else 0."),
		halted: f.gauge("halted_seconds", "How long the process has been halted; 0 if it is not."),
		deadLetters: f.gauge("dead_letters_open", "Dead letters of the process that are neither replayed nor discarded, counted up to 100000. "+
			"Absent while they cannot be counted."),
		lagRecords: f.gauge("lag_records", "Committed records after the cursor, counted up to 100000. Absent while they cannot be counted."),
		lagSeconds: f.gauge("lag_seconds", "Age of the oldest record after the cursor; 0 if there is none. Absent for a source without created_at."),
		headAge:    f.gauge("head_of_line_age_seconds", "How long the next record to deliver has been failing; 0 if it is not."),
		fenceLag: f.gauge("fence_lag_seconds", "How long the fence has let nothing newer through, by the kind of transaction that holds it: "+
			"one that writes to the table, any transaction (where created_at is the start of one), or a prepared one.", "cause"),
		at: f.gauge("last_look_timestamp_seconds", "When the database was last asked for the gauges of the process, except its lag, in Unix time."),
	}
}

// Look sets the gauges of the process that l is about, without its lag.
func (m *Metrics) Look(l Look) {
	if p, ok := m.processes[l.Row.Process]; ok {
		m.looks.Lock()
		defer m.looks.Unlock()
		p.row(l)
		p.set(p.looks.at, float64(l.Asked.UnixMicro())/1e6)
	}
}

// Lag sets the lag of a process.
func (m *Metrics) Lag(process string, l table.Lag) {
	p, ok := m.processes[process]
	if !ok {
		return
	}
	m.looks.Lock()
	defer m.looks.Unlock()
	if l.Aged {
		p.set(p.looks.lagSeconds, l.Age.Seconds())
	}
	p.set(p.looks.lagRecords, float64(l.Records))
}

// DeadLetters sets how many dead letters of a process are open.
func (m *Metrics) DeadLetters(process string, open int64) {
	if p, ok := m.processes[process]; ok {
		p.set(p.looks.deadLetters, float64(open))
	}
}

// NoDeadLetters removes the gauge of open dead letters, because they cannot be counted.
func (m *Metrics) NoDeadLetters(process string) {
	if p, ok := m.processes[process]; ok {
		p.looks.deadLetters.DeleteLabelValues(process)
	}
}

// NoLag removes the lag of a process, because it cannot be counted. An old value would look true.
func (m *Metrics) NoLag(process string) {
	if p, ok := m.processes[process]; ok {
		m.looks.Lock()
		defer m.looks.Unlock()
		p.looks.lagRecords.DeleteLabelValues(process)
		p.looks.lagSeconds.DeleteLabelValues(process)
	}
}

func (p *process) row(l Look) {
	p.set(p.looks.sequence, float64(l.Row.Sequence))
	p.set(p.looks.epoch, float64(l.Row.Epoch))
	p.set(p.looks.leads, number(l.Leads == Leader))
	p.set(p.looks.paused, number(l.Row.State == cursor.Paused))
	p.set(p.looks.headAge, failing(l).Seconds())
	p.set(p.looks.halted, halted(l).Seconds())
	for _, cause := range table.Causes() {
		lag := 0.0
		if cause == l.Held.Cause && l.Row.State == cursor.Running { // else the fence is not asked
			lag = l.Held.Lag.Seconds()
		}
		p.set(p.looks.fenceLag, lag, string(cause))
	}
}

// Late counts records of a process that appeared before its cursor.
func (m *Metrics) Late(process string, records int) {
	if p, ok := m.processes[process]; ok {
		p.add(p.late, float64(records))
	}
}

// failing returns how long the record after the cursor has been failing. The row has every attempt.
func failing(l Look) time.Duration {
	if l.Row.Failure == nil || l.Row.Failure.Attempts == 0 { // 0: a restored database, not a record
		return 0
	}
	return max(0, l.Now.Sub(l.Row.Failure.First))
}

// halted returns how long the process has been halted. The halt begins with the last failed attempt, or, if there is
// none, with the last change of the row. A halt that has just begun has a length above 0, too: 0 would mean that
// there is none.
func halted(l Look) time.Duration {
	if l.Row.State != cursor.Halted {
		return 0
	}
	since := l.Row.UpdatedAt
	if f := l.Row.Failure; f != nil {
		since = f.Last
	}
	return max(time.Millisecond, l.Now.Sub(since))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
