// Command demo shows the ordered dispatcher at work, on a machine that has nothing but Go: what
// `make demo` runs.
//
// Nouns: a booking is a row that producers commit; the receiver is an SMS service that must get every booking, in
// order; a worker is a process of this very program, `run -c FILE`; the history is what all of them noted; the
// verdict is what follows from it. The worker is the program that ships: package command.
//
//	8 producers ──COMMIT──▶ bookings ──▶ worker A ──POST──▶ receiver
//	  │ overlapping,           │           worker B            │ notes position, sequence, epoch, contents
//	  │ some rolled back       │             ▲                 │
//	  │                        │   A is killed in the middle   │
//	  │                        │   of a delivery: B takes over │
//	  ▼                        ▼                               ▼
//	their own log         the table at the end           deliveries
//	  └────────────────────────┴──── history ──▶ judge ────────┘
//
// Invariants:
//
//   - What was committed is known from two sides, the producers' log and the table at the end, and both must agree.
//   - Each duplicate is tied to the fault that caused it. One that is not makes the verdict bad, as does anything lost,
//     out of order, altered or delivered without having been committed.
//   - judge is a function of the history alone, tested on histories made by hand.
//   - Nothing is left behind: not by Run, however often it is interrupted, nor, on a server of its own, when this
//     process is killed. See package throwaway.
//   - Every wait ends: with what is waited for, with the end of a worker or a producer, with a stall, or with ctx.
//
// The workers run as the programs of package throwaway do: as root, by an unprivileged user.
//
// Left out: sinks other than webhook, poison records, several processes, and what becomes of the demo's schema on a
// server of the user's when this process is killed with SIGKILL (it stays; its name begins with ordered_dispatcher_demo_).
package main
