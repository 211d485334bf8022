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

// lookVectors are the gauges that a look sets.
type lookVectors struct {
	sequence, epoch, leads, paused, halted, deadLetters, lagRecords, lagSeconds, headAge, fenceLag, at *prometheus.GaugeVec
}

func newLookVectors(f factory) lookVectors {
	return lookVectors{
		sequence: f.gauge("sequence", "Records that the process has delivered since its cursor was made, by whichever worker."),
		epoch:    f.gauge("epoch", "Epoch of the process: it grows with every change of worker."),
		leads: f.gauge("leads", "1 if this worker is the one that the cursor names, which delivered last, else 0. "+
			"The sum over all workers is 1."),
		paused: f.gauge("paused", "1 if the process is paused by an operator, else 0."),
		halted: f.gauge("halted_seconds", "For how long the process has stood halted; 0 if it does not."),
		deadLetters: f.gauge("dead_letters_open", "Dead letters of the process that are neither replayed nor discarded, counted up to 100000. "+
			"Not there while they cannot be counted."),
		lagRecords: f.gauge("lag_records", "Committed records behind the cursor, counted up to 100000. Not there while they cannot be counted."),
		lagSeconds: f.gauge("lag_seconds", "Age of the oldest record behind the cursor; 0 if there is none. Not there for a source without created_at."),
		headAge:    f.gauge("head_of_line_age_seconds", "For how long the record that is to be delivered next has been failing; 0 if it is not."),
		fenceLag: f.gauge("fence_lag_seconds", "For how long the fence has let nothing newer through, by the kind of transaction that holds it: "+
			"one that writes to the table, any transaction (where created_at is the start of one), or a prepared one.", "cause"),
		at: f.gauge("last_look_timestamp_seconds", "When the database was asked for what the gauges of the process say, but for its lag, in Unix time."),
	}
}

// looks are the gauges of one process. A gauge whose value is not known yet does not exist.
type looks struct {
	name string
	lookVectors
}

func (v lookVectors) process(name string) looks { return looks{name, v} }

// Look sets the gauges of the process that l is about, without its lag.
func (m *Metrics) Look(l Look) {
	if p, ok := m.processes[l.Row.Process]; ok {
		m.looks.Lock()
		defer m.looks.Unlock()
		p.looks.row(l)
		p.looks.at.WithLabelValues(p.looks.name).Set(float64(l.Asked.UnixMicro()) / 1e6)
	}
}

// Lag is the amount of records after the position of a process.
type Lag struct {
	Process string
	Records int64
	// Age is the age of the oldest record; nil if the source has no time of creation.
	Age *time.Duration
}

// Lag sets the lag of the process that l is about.
func (m *Metrics) Lag(l Lag) {
	p, ok := m.processes[l.Process]
	if !ok {
		return
	}
	m.looks.Lock()
	defer m.looks.Unlock()
	if l.Age != nil {
		p.looks.lagSeconds.WithLabelValues(l.Process).Set(l.Age.Seconds())
	}
	p.looks.lagRecords.WithLabelValues(l.Process).Set(float64(l.Records))
}

// DeadLetters sets how many dead letters of a process are open.
func (m *Metrics) DeadLetters(process string, open int64) {
	if p, ok := m.processes[process]; ok {
		p.looks.deadLetters.WithLabelValues(process).Set(float64(open))
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

func (g looks) row(l Look) {
	g.sequence.WithLabelValues(g.name).Set(float64(l.Row.Sequence))
	g.epoch.WithLabelValues(g.name).Set(float64(l.Row.Epoch))
	g.leads.WithLabelValues(g.name).Set(number(l.Leads == Leader))
	g.paused.WithLabelValues(g.name).Set(number(l.Row.State == cursor.Paused))
	g.headAge.WithLabelValues(g.name).Set(failing(l).Seconds())
	g.halted.WithLabelValues(g.name).Set(halted(l).Seconds())
	for _, cause := range table.Causes() {
		lag := 0.0
		if cause == l.Held.Cause && l.Row.State == cursor.Running { // else the fence is not asked
			lag = l.Held.Lag.Seconds()
		}
		g.fenceLag.WithLabelValues(g.name, string(cause)).Set(lag)
	}
}

// Late counts records of a process that appeared before its cursor.
func (m *Metrics) Late(process string, records int) {
	if p, ok := m.processes[process]; ok {
		p.late.Add(float64(records))
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
