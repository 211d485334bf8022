package metrics

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Metrics holds the metrics of one daemon. It is safe for use by several goroutines.
type Metrics struct {
	registry  *prometheus.Registry
	processes map[string]*process // never changes
	worker    workerVectors

	looks sync.RWMutex // held by a scrape, and while a look sets its gauges: neither sees half of the other
}

// Gather collects all series. The values of one look are always together.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	m.looks.RLock()
	defer m.looks.RUnlock()
	for _, p := range m.processes {
		p.lease.gauge(time.Now())
	}
	return m.registry.Gather()
}

// process has the series of one process, among those of all.
type process struct {
	name string
	vectors
	lease *lease
}

// add adds to a counter of the process.
func (p *process) add(to *prometheus.CounterVec, n float64, labels ...string) {
	to.WithLabelValues(append([]string{p.name}, labels...)...).Add(n)
}

// set sets a gauge of the process.
func (p *process) set(gauge *prometheus.GaugeVec, value float64, labels ...string) {
	gauge.WithLabelValues(append([]string{p.name}, labels...)...).Set(value)
}

// acknowledged is the outcome of an attempt that did not fail. The other outcomes are classes of errors.
const acknowledged = "acknowledged"

// classes are the values of the label class.
var classes = []cursor.Class{
	cursor.ClassTransient, cursor.ClassUnreached, cursor.ClassPermanent, cursor.ClassUnreadable, cursor.ClassRefused, cursor.ClassUnknown, cursor.ClassDatabase,
}

// New makes the metrics of these processes, all at zero.
func New(processes []string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), processes: map[string]*process{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.worker = newWorkerVectors(m.registry)
	v := newVectors(m.registry)
	for _, name := range processes {
		m.processes[name] = v.process(name)
	}
	return m
}

// Handler answers a scrape from memory. It bounds how many it answers at once.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// maxScrapes is how many scrapes are answered at once: one for each of a few Prometheus servers.
const maxScrapes = 5

// Observe counts an event. It ignores events of processes that New did not get.
func (m *Metrics) Observe(e processor.Event) {
	p, ok := m.processes[e.Process]
	if !ok {
		return
	}
	p.lease.observe(e)
	switch e.Kind {
	case processor.EventAttempt:
		outcome := acknowledged
		if e.Class != "" {
			outcome = label(e.Class)
		}
		p.add(p.attempts, 1, outcome)
		p.attemptTime.WithLabelValues(p.name).Observe(e.Took.Seconds())
	case processor.EventAdvance:
		p.advanced(e)
	case processor.EventHalt:
		p.add(p.halts, 1, label(e.Class))
	case processor.EventDeadLetter:
		p.add(p.deadLetters, 1, label(e.Class))
	case processor.EventLimited:
		p.add(p.limitWait, e.Took.Seconds())
	case processor.EventBreaker:
		p.add(p.breakerWait, e.Took.Seconds())
	case processor.EventTakeOver:
		p.add(p.takeOvers, 1)
	case processor.EventLeaseLost:
		p.add(p.leaseLosses, 1)
	case processor.EventDatabaseError:
		p.add(p.databaseErrors, 1)
	}
}

// advanced counts an advance. Its records are those that were delivered.
func (p *process) advanced(e processor.Event) {
	p.add(p.delivered, float64(e.Records))
	if !e.Created.IsZero() {
		p.recordAge.WithLabelValues(p.name).Observe(max(0, time.Since(e.Created).Seconds()))
	}
}

// label returns the label of a class. One that it does not know is ClassUnknown: new labels would be without bound.
func label(class cursor.Class) string {
	if !slices.Contains(classes, class) {
		class = cursor.ClassUnknown
	}
	return string(class)
}

// vectors are the metrics of all processes.
type vectors struct {
	delivered, attempts, halts, deadLetters, takeOvers, leaseLosses, databaseErrors, limitWait, breakerWait, late *prometheus.CounterVec

	attemptTime, recordAge *prometheus.HistogramVec

	looks  lookVectors
	leases leaseVectors
}

const namespace = "ordered_dispatcher"

// The bounds of the buckets, in seconds: for a sink call up to the longest usual time-out, and for a record's age up
// to a lag of one day.
var (
	attemptBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	ageBuckets     = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 86400}
)

func newVectors(registry *prometheus.Registry) vectors {
	f := factory{registry}
	return vectors{
		delivered:      f.counter("records_delivered_total", "Records that this worker durably moved the cursor past."),
		attempts:       f.counter("attempts_total", "Sink calls of this worker by outcome: acknowledged, or the class of the error. A call of a batch sink counts once, with any number of records.", "outcome"),
		halts:          f.counter("halts_total", "Records at which this worker halted the process, by the class of the last error.", "class"),
		deadLetters:    f.counter("dead_letters_total", "Records that this worker put aside as dead letters, by the class of the last error.", "class"),
		limitWait:      f.counter("limit_wait_seconds_total", "Time for which the limit made records wait on this worker."),
		breakerWait:    f.counter("breaker_wait_seconds_total", "Time for which the open breaker made the process wait, by this worker's attempts."),
		takeOvers:      f.counter("take_overs_total", "How often this worker took the process over from another one and began an epoch."),
		leaseLosses:    f.counter("lease_losses_total", "How often this worker lost the lease of the process without giving it back."),
		databaseErrors: f.counter("database_errors_total", "Rounds of this worker that failed because of the database or the source."),
		late: f.counter("late_records_total", "Records that appeared before the cursor, where they are never read, as this worker saw it. "+
			"Every worker sees them."),
		attemptTime: f.histogram("attempt_duration_seconds", "How long a sink call of this worker took, with any outcome.", attemptBuckets),
		recordAge: f.histogram("record_age_seconds", "Age of a record, by its created_at, when the cursor was durably moved past it: of the last record of each advance. "+
			"The stamp comes from the database's clock, the end from this machine's clock.", ageBuckets),
		looks:  newLookVectors(f),
		leases: newLeaseVectors(f),
	}
}

// process makes all counters of one process, so that they exist from the start.
func (v vectors) process(name string) *process {
	p := &process{name: name, vectors: v, lease: &lease{name: name, leaseVectors: v.leases}}
	for _, counter := range []*prometheus.CounterVec{v.delivered, v.takeOvers, v.leaseLosses, v.databaseErrors, v.limitWait, v.breakerWait, v.late} {
		p.add(counter, 0)
	}
	p.add(v.attempts, 0, acknowledged)
	for _, class := range classes {
		p.add(v.attempts, 0, string(class))
		p.add(v.halts, 0, string(class))
		p.add(v.deadLetters, 0, string(class))
	}
	v.attemptTime.WithLabelValues(name)
	v.recordAge.WithLabelValues(name)
	return p
}

// factory registers metrics. The first label of each is process.
type factory struct{ registry *prometheus.Registry }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, append([]string{"process"}, labels...))
	f.registry.MustRegister(v)
	return v
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, append([]string{"process"}, labels...))
	f.registry.MustRegister(v)
	return v
}

func (f factory) histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, []string{"process"})
	f.registry.MustRegister(v)
	return v
}
