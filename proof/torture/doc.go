// Command torture runs real daemons on a real PostgreSQL, breaks everything around them by a seeded schedule, and judges
// by what everybody noted whether the dispatcher kept its promises:
//
//	go run ./proof/torture -seed 7 -for 10m      a campaign; the same seed gives the same schedule
//	go run ./proof/torture -short                one fixed seed, as in CI
//	go run ./proof/torture -judge DIR            judges a kept history again
//
// It prints a Markdown table to stdout, and what it is doing to stderr. It exits 0 if every promise was kept; otherwise
// 1, with the command that replays the seed and the directory of the histories.
//
//	producers ──▶ PostgreSQL ◀──link──▶ worker A ──┐
//	  │            │  ▲ audit    ◀─link─▶ worker B ──┼─link─▶ receiver
//	  │            │  │          ◀─link─▶ worker C ──┘          │
//	  │            │  nemesis: kills, stops, cuts, stalls, tears, crashes, promotes, locks, scripts answers
//	  │            │  watcher: asks `status` and every worker's /metrics
//	  ▼            ▼                  ▼                          ▼
//	       histories: see package history ──▶ package judge ──▶ verdict
//
// # Nouns
//
//   - Field: the server, the workers, the links, the receiver and the brokers of one run. RabbitMQ and NATS stand beside
//     the receiver; what came is read from their queues and streams when all is over.
//   - Worker: a slot (A, B, C) in which a process of the built program runs; a fault may end it, and it is started anew.
//   - Workload: one kind of load with all it brings: tables, processes, ways to write, daemons, and ways to break them.
//   - Slot: where a daemon runs, as which role of the database, with how many connections.
//   - Metronome: a little work at regular times, whose duration tells the judge how busy the machine was.
//   - Kind: one way to break something, and to mend it again.
//   - Nemesis: runs the plan's faults, each track for itself.
//   - Watcher: asks how the processes stand, as an operator and as a Prometheus do.
//   - Cell: a database beside all that, whose servers are replaced, with daemons, receivers and invariants of its own. Here
//     commits are lost, and ids come again. Its files are cell_*.go, one for each fault.
//   - Script: what the receiver does with the next attempt of a process instead of applying and answering it.
//
// # Invariants
//
//   - The judge sees histories only; nothing that the workers say of themselves excuses them.
//   - A fault is noted before it is inflicted, and as missed if it met nobody.
//   - Nothing outlives the program: server and workers run in directories of package throwaway.
//
// # A new kind of load
//
// It is one file, workload_NAME.go, with a function that returns a workload, and one line in workloads (workload.go). A
// workload may bring:
//
//   - sources: a table, or (with table and where) those rows of one that meet a condition. The rows that do not meet it are
//     another source, so that the judge accounts for them as well. private keeps the common producers away.
//   - sql: functions, procedures, anything that runs once after all tables were made.
//   - processes: what history.Process has no field for goes to source (`, where: "wanted"`) and keys (whole lines of YAML).
//     Add a field to history.Process only if the judge must know.
//   - writes: ways to commit. A way notes its rows (make), then what became of them (note, outcome): the judge believes
//     nothing else. alone and inTx do it for what resembles them.
//   - slots: further daemons, each with a role, a pool and the processes that it runs.
//   - kinds and faults: what a nemesis or an operator does to a process, and how often. A kind also needs a constant and a
//     place in history/kind.go, and an entry of docs/failures.md that names it. To the judge it excuses nothing, unless causes
//     or answers in judge/cause.go say so: the common case is that neither does.
//   - tracks: the faults of a victim that is no process, worker, table or broker.
//
// The fixed seed of -short must have every kind (TestShort_TheFixedSeedHasEveryKind): if it does not, try other seeds.
//
// # Left out
//
// Network namespaces, full disks, and clocks that are set while a server runs.
package main
