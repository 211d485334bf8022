// Package metrics turns the events of processes, and the state of their rows in the database, into Prometheus
// metrics.
//
// # Nouns
//
//   - Metrics: the metrics of one daemon, for a fixed set of processes.
//   - Event: a report of a processor (processor.Config.Observe). It is counted.
//   - Look: what the database and the fence reported of a process at one moment. It sets gauges.
//
// # Diagram
//
//	processor ── Event ──► counters, histograms ─┐
//	                                             ├──► Handler ──► Prometheus
//	database ─── Look ───► gauges ───────────────┘
//
// # Invariants
//
//   - A scrape never asks the database and never waits for it. The gauges are as old as
//     ordered_dispatcher_last_look_timestamp_seconds shows.
//   - Labels are process, outcome, class and cause. Their values are the names of the configuration's processes and of
//     fixed sets. No value comes from a record.
//   - Every series of a counter exists from the start, at 0, so that its first increment is seen.
//   - Counters are per worker: add them up. Gauges describe the process, so every worker reports the same value: take the
//     largest.
//
// # Left out
//
// Package daemon looks at the database and serves the metrics.
package metrics
