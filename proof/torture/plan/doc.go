// Package plan decides, from a seed, which faults meet which victims and when.
//
// Nouns: a track is one victim's sequence of faults: a worker, a process, a table, the server. A Fault is one line of
// the schedule.
//
// Invariants:
//
//   - The same seed, length and shape give the same plan.
//   - Faults of one track do not overlap; those of different tracks do, on purpose.
//   - Every fault ends within the length of the run.
//
// The plan cannot fix how far the victims have come when a fault meets them. A replayed seed meets them a little
// earlier or later, and finds the same weakness again if it is one.
package plan
