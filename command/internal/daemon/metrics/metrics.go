package metrics

import (
	"net/http"
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

// process has the series of one process.
type process struct {
	delivered      prometheus.Counter
	attempts       map[cursor.Class]prometheus.Counter // "": acknowledged
	halts          map[cursor.Class]prometheus.Counter
	deadLetters    map[cursor.Class]prometheus.Counter
	takeOvers      prometheus.Counter
	leaseLosses    prometheus.Counter
	databaseErrors prometheus.Counter
	limitWait      prometheus.Counter
	breakerWait    prometheus.Counter
	late           prometheus.Counter
	attemptTime    prometheus.Observer
	recordAge      prometheus.Observer

	looks looks
	lease *lease
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
		count(p.attempts, e.Class)
		p.attemptTime.Observe(e.Took.Seconds())
	case processor.EventAdvance:
		p.advanced(e)
	case processor.EventHalt:
		count(p.halts, e.Class)
	case processor.EventDeadLetter:
		count(p.deadLetters, e.Class)
	case processor.EventLimited:
		p.limitWait.Add(e.Took.Seconds())
	case processor.EventBreaker:
		p.breakerWait.Add(e.Took.Seconds())
	case processor.EventTakeOver:
		p.takeOvers.Inc()
	case processor.EventLeaseLost:
		p.leaseLosses.Inc()
	case processor.EventDatabaseError:
		p.databaseErrors.Inc()
	}
}

// advanced counts an advance. Its records are those that were delivered.
func (p *process) advanced(e processor.Event) {
	p.delivered.Add(float64(e.Records))
	if !e.Created.IsZero() {
		p.recordAge.Observe(max(0, time.Since(e.Created).Seconds()))
	}
}

// count counts by class. It counts a class that it does not know as ClassUnknown: new labels would be without bound.
func count(by map[cursor.Class]prometheus.Counter, class cursor.Class) {
	c, ok := by[class]
	if !ok {
		c = by[cursor.ClassUnknown]
	}
	c.Inc()
}

// vectors are the metrics of all processes.
type vectors struct {
	delivered, attempts, halts, deadLetters, takeOvers, leaseLosses, databaseErrors, limitWait, breakerWait, late *prometheus.CounterVec

	attemptTime, recordAge *prometheus.HistogramVec

	looks lookVectors
	lease leaseVectors
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
		delivered:      f.counter("records_delivered_total", "Records that the cursor was durably moved behind, by this worker."),
		attempts:       f.counter("attempts_total", "Sink calls of this worker by outcome: acknowledged, or the class of the error. A call of a batch sink is one, with any number of records.", "outcome"),
		halts:          f.counter("halts_total", "Records at which this worker halted the process, by the class of the last error.", "class"),
		deadLetters:    f.counter("dead_letters_total", "Records that this worker put aside as dead letters, by the class of the last error.", "class"),
		limitWait:      f.counter("limit_wait_seconds_total", "Time for which the limit made records wait on this worker."),
		breakerWait:    f.counter("breaker_wait_seconds_total", "Time for which the open breaker made the process wait, by this worker's attempts."),
		takeOvers:      f.counter("take_overs_total", "How often this worker took the process over from another one and began an epoch."),
		leaseLosses:    f.counter("lease_losses_total", "How often this worker lost the lease of the process without giving it back."),
		databaseErrors: f.counter("database_errors_total", "Rounds of this worker that failed by the database or the source."),
		late: f.counter("late_records_total", "Records that came behind the cursor, where they are never read, as this worker saw it. "+
			"Every worker sees them."),
		attemptTime: f.histogram("attempt_duration_seconds", "How long a sink call of this worker took, with any outcome.", attemptBuckets),
		recordAge: f.histogram("record_age_seconds", "Age of a record, by its created_at, when the cursor was durably moved behind it: of the last record of each advance. "+
			"The one clock is the database's, the other this machine's.", ageBuckets),
		looks: newLookVectors(f),
		lease: newLeaseVectors(f),
	}
}

// process makes all series of one process, so that they exist from the start.
func (v vectors) process(name string) *process {
	p := &process{
		delivered:      v.delivered.WithLabelValues(name),
		attempts:       map[cursor.Class]prometheus.Counter{"": v.attempts.WithLabelValues(name, acknowledged)},
		halts:          map[cursor.Class]prometheus.Counter{},
		deadLetters:    map[cursor.Class]prometheus.Counter{},
		limitWait:      v.limitWait.WithLabelValues(name),
		breakerWait:    v.breakerWait.WithLabelValues(name),
		late:           v.late.WithLabelValues(name),
		takeOvers:      v.takeOvers.WithLabelValues(name),
		leaseLosses:    v.leaseLosses.WithLabelValues(name),
		databaseErrors: v.databaseErrors.WithLabelValues(name),
		attemptTime:    v.attemptTime.WithLabelValues(name),
		recordAge:      v.recordAge.WithLabelValues(name),
		looks:          v.looks.process(name),
		lease:          &lease{name: name, leaseVectors: v.lease},
	}
	for _, class := range classes {
		p.attempts[class] = v.attempts.WithLabelValues(name, string(class))
		p.halts[class] = v.halts.WithLabelValues(name, string(class))
		p.deadLetters[class] = v.deadLetters.WithLabelValues(name, string(class))
	}
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
