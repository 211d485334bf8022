// Package metrics turns what happens in processes, and what their database says
// of them, into Prometheus metrics.
//
// # Nouns
//
//   - Metrics: those of one daemon, of a fixed set of processes.
//   - Event: what a processor told (processor.Config.Observe); it counts.
//   - Look: what the database, and the fence, said of a process at one moment; it
//     sets gauges.
//
// # Diagram
//
//	processor ── Event ──► counters, histograms ─┐
//	                                             ├──► Handler ──► Prometheus
//	database ─── Look ───► gauges ───────────────┘
//
// # Invariants
//
//   - A scrape asks no database and waits for none: gauges are as old as
//     ordered_dispatcher_last_look_timestamp_seconds says.
//   - Labels are process, outcome, class and cause, with the names of the
//     configuration's processes and of fixed sets. Nothing comes from a record.
//   - Every series of a counter is there from the start, at 0, so that the first
//     increment of it is seen.
//   - Every worker counts its own work; gauges say of the process what every worker
//     of it says. So counters are to be added up, and of gauges the largest taken.
//
// # Left out
//
// Who looks, and who listens: see package daemon.
package metrics
