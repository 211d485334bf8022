package metrics

import "github.com/prometheus/client_golang/prometheus"

// workerVectors are the metrics of a worker that belong to no process.
type workerVectors struct {
	notifications   *prometheus.CounterVec
	retentionFailed *prometheus.GaugeVec
}

func newWorkerVectors(registry *prometheus.Registry) workerVectors {
	v := workerVectors{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "notifications_total",
			Help: "Messages of this worker about alarms, by target and outcome: sent, or failed. A message that failed is tried again.",
		}, []string{"target", "outcome"}),
		retentionFailed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "retention_failed",
			Help: "1 if the last pass of this worker over the rule of retention of a table failed, else 0.",
		}, []string{"table"}),
	}
	registry.MustRegister(v.notifications, v.retentionFailed)
	return v
}

// Outcome is how an attempt to tell a target ended.
type Outcome string

// The outcomes.
const (
	Sent   Outcome = "sent"
	Failed Outcome = "failed"
)

// Targets makes the counters of these targets, so that they exist from the start.
func (m *Metrics) Targets(names ...string) {
	for _, name := range names {
		for _, outcome := range []Outcome{Sent, Failed} {
			m.worker.notifications.WithLabelValues(name, string(outcome)).Add(0)
		}
	}
}

// Notified counts an attempt to tell a target.
func (m *Metrics) Notified(target string, outcome Outcome) {
	m.worker.notifications.WithLabelValues(target, string(outcome)).Inc()
}

// Pruned notes how a pass over the rule of a table ended.
func (m *Metrics) Pruned(table string, err error) {
	m.worker.retentionFailed.WithLabelValues(table).Set(number(err != nil))
}
