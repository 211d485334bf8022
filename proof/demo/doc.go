// Command demo shows the ordered dispatcher at work, on a machine that has only Go. `make demo` runs it.
//
// Nouns: a booking is a row that producers commit. The receiver is an SMS service that must get every booking, in
// order. A worker is a process of this same program, `run -c FILE`. The history is what all of them noted. The
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
//   - Two sides record the commits, the producers' log and the table at the end, and both must agree.
//   - Each duplicate is tied to the fault that caused it. A duplicate without a fault makes the verdict bad. So does
//     a record that is lost, out of order, altered or delivered without having been committed.
//   - judge is a function of the history alone, tested on histories made by hand.
//   - Nothing is left behind by Run, however often it is interrupted, nor, on a server of its own, when this process
//     is killed. See package throwaway.
//   - Every wait ends: with what it waits for, with the end of a worker or a producer, with a stall, or with ctx.
//
// The workers run as the programs of package throwaway do: as root, by an unprivileged user.
//
// Left out: sinks other than webhook, poison records, and several processes. Also the demo's schema on a server of
// the user's when this process is killed with SIGKILL: it stays, and its name begins with ordered_dispatcher_demo_.
package main
