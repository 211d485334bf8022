package desk

import (
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Bounds of what the board remembers of one process.
const (
	maxSamples = 12               // for the rate of now
	rateWindow = 15 * time.Second // over which the rate of now is computed
	maxPoints  = 15 * 60          // of a process that is looked at closely
	maxBuckets = 90
	maxSpans   = 200
	memoryTime = 24 * time.Hour
	// flap is how short a time between two holds of one cause is not worth a line of its own.
	flap = 5 * time.Second
)

// memory is what the board has seen of one process.
type memory struct {
	process string

	row   cursor.Row
	rowAt time.Time
	stale bool // the row says something else than when the status was read, or a decision came since
	nudge int  // the last one, of those that the board counts

	status     daemon.Status
	statusAt   time.Time // zero: never read
	file       daemon.Process
	configured bool

	delivered int64 // since the board began
	samples   []sample
	buckets   []bucket        // of SparkStep each, the oldest first
	spans     []Span          // what held it up, the oldest first
	haltedAt  cursor.Position // of the record at which the last span halted; "" for another cause
	cause     Cause           // at the last look
	latency   *float64        // of the last record that was delivered since the last point; nil if none was
	backfill  *backfill

	detail
}

// sample is how much was delivered by a time.
type sample struct {
	at        time.Time
	delivered int64
}

// bucket is what happened in SparkStep.
type bucket struct {
	at        time.Time // its beginning
	delivered int64
	looked    time.Duration // between looks
	point     Point         // of its last look
}

// noteRow keeps a row, and how far it has come since the last one.
func (m *memory) noteRow(row cursor.Row, now time.Time) {
	was, at := m.row, m.rowAt
	m.row, m.rowAt = row, now
	if at.IsZero() {
		m.stale = true
		m.samples = []sample{{now, 0}}
		return
	}
	if row.State != was.State || row.Epoch != was.Epoch || (row.Failure == nil) != (was.Failure == nil) ||
		row.Failure != nil && row.Failure.Attempts != was.Failure.Attempts {
		m.stale = true
	}
	n, _ := row.DeliveredSince(was)
	m.delivered += n
	m.samples = append(m.samples, sample{now, m.delivered})
	if len(m.samples) > maxSamples {
		m.samples = m.samples[1:]
	}
	if n > 0 {
		m.latency = latencyOf(row)
	}
	b := m.bucket(now)
	b.delivered += n
	b.looked += min(now.Sub(at), SparkStep)
}

// latencyOf is how long after its creation the last record was delivered; nil if its position has no time.
func latencyOf(row cursor.Row) *float64 {
	created, ok := table.Moment(row.Position)
	if !ok {
		return nil
	}
	seconds := max(0, row.UpdatedAt.Sub(created).Seconds())
	return &seconds
}

// bucket returns the bucket of a time.
func (m *memory) bucket(now time.Time) *bucket {
	at := now.Truncate(SparkStep)
	if n := len(m.buckets); n == 0 || m.buckets[n-1].at.Before(at) {
		m.buckets = append(m.buckets, bucket{at: at})
	}
	if len(m.buckets) > maxBuckets {
		m.buckets = slices.Delete(m.buckets, 0, len(m.buckets)-maxBuckets)
	}
	return &m.buckets[len(m.buckets)-1]
}

// rate is how many records a second are delivered now; nil if it is not known.
func (m *memory) rate() *float64 {
	if len(m.samples) < 2 {
		return nil
	}
	last := m.samples[len(m.samples)-1]
	first := last
	for _, s := range m.samples {
		if last.at.Sub(s.at) <= rateWindow {
			first = s
			break
		}
	}
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return nil
	}
	rate := float64(last.delivered-first.delivered) / seconds
	return &rate
}

// spark are the rates of the last buckets, the oldest first.
func (m *memory) spark(now time.Time) []*float64 {
	rates := make([]*float64, SparkLength)
	end := now.Truncate(SparkStep)
	for _, b := range m.buckets {
		i := SparkLength - 1 - int(end.Sub(b.at)/SparkStep)
		if i < 0 || i >= SparkLength || b.looked <= 0 {
			continue
		}
		rate := float64(b.delivered) / b.looked.Seconds()
		rates[i] = &rate
	}
	return rates
}

// noteStatus keeps a status.
func (m *memory) noteStatus(s daemon.Status, p daemon.Process, configured bool, now time.Time) {
	m.status, m.statusAt, m.file, m.configured = s, now, p, configured
	m.noteBackfill(now)
}

// waiting returns the records that wait, as of the last status; nil if that is not known. age is as of now.
func (m *memory) waiting(now time.Time) (records *int64, age *float64) {
	lag := m.status.Lag
	if m.statusAt.IsZero() || lag == nil {
		return nil, nil
	}
	n := lag.Records
	if lag.Age != nil {
		seconds := lag.Age.Seconds()
		if n > 0 && m.row.Position == m.status.Position { // the oldest is still the same one
			seconds += now.Sub(m.statusAt).Seconds()
		}
		age = &seconds
	}
	return &n, age
}

// noteCause keeps why records wait at a look, and a point of the series.
func (m *memory) noteCause(now time.Time, quiet time.Duration) {
	m.cause = m.causeNow()
	m.noteSpan(now, quiet)
	records, age := m.waiting(now)
	point := Point{At: now, Rate: m.rate(), Waiting: records, Age: age, Latency: m.latency, Cause: m.cause}
	m.latency = nil
	b := m.bucket(now)
	earlier := b.point.Latency
	if b.point = point; point.Latency == nil {
		b.point.Latency = earlier // of another look of the same bucket
	}
	if !m.detailAt.IsZero() {
		m.points = append(m.points, point)
		if len(m.points) > maxPoints {
			m.points = slices.Delete(m.points, 0, len(m.points)-maxPoints)
		}
	}
}
