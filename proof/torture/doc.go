// Command torture runs real daemons on a real PostgreSQL and breaks everything around them by a seeded schedule. From
// the notes of all parties it judges whether the dispatcher kept its promises:
//
//	go run ./proof/torture -seed 7 -for 10m      a campaign; the same seed gives the same schedule
//	go run ./proof/torture -short                one fixed seed, as in CI
//	go run ./proof/torture -judge DIR            judges a kept history again
//
// It prints a Markdown table to stdout, and its progress to stderr. It exits 0 if every promise was kept. Otherwise
// it exits 1, with the command that replays the seed and the directory of the histories.
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
//   - Field: the server, the workers, the links, the receiver and the brokers of one run. RabbitMQ and NATS run
//     beside the receiver. Their queues and streams are read when all is over.
//   - Worker: a slot (A, B, C) in which a process of the built program runs. A fault may end it; then it is started
//     anew.
//   - Workload: one kind of load with all its parts: tables, processes, ways to write, daemons, and ways to break
//     them.
//   - Slot: the place of a daemon, with its role of the database and its number of connections.
//   - Metronome: a little work at regular times. Its duration shows the judge how busy the machine was.
//   - Kind: one way to break something, and to repair it again.
//   - Nemesis: runs the plan's faults, each track for itself.
//   - Watcher: asks for the state of the processes, as an operator and as a Prometheus do.
//   - Cell: a separate database whose servers are replaced, with daemons, receivers and invariants of its own. Here
//     commits are lost, and ids come again. Its files are cell_*.go, one for each fault.
//   - Script: what the receiver does with the next attempt of a process instead of applying and answering it.
//
// # Invariants
//
//   - The judge sees only histories. What the workers report of themselves excuses nothing.
//   - A fault is noted before it is inflicted, and as missed if it met no victim.
//   - Nothing outlives the program: server and workers run in directories of package throwaway.
//
// # A new kind of load
//
// It is one file, workload_NAME.go, with a function that returns a workload, and one line in workloads (workload.go).
// A workload may have:
//
//   - sources: a table, or (with table and where) those rows of one that meet a condition. The rows that do not meet
//     it are another source, so that the judge accounts for them as well. private keeps the common producers away.
//   - sql: functions, procedures, and other SQL that runs once after all tables were made.
//   - processes: settings for which history.Process has no field go to source (`, where: "wanted"`) and keys (whole
//     lines of YAML). Add a field to history.Process only if the judge must know.
//   - writes: ways to commit. A way notes its rows (make), then what happened to them (note, outcome): the judge
//     believes nothing else. alone and inTx do it for similar ways.
//   - slots: further daemons, each with a role, a pool and the processes that it runs.
//   - kinds and faults: what a nemesis or an operator does to a process, and how often. A kind also needs a constant
//     and a place in history/kind.go, and an entry of docs/failures.md that names it. For the judge it excuses
//     nothing, unless causes or answers in judge/cause.go list it: usually neither does.
//   - tracks: the faults of a victim that is not a process, worker, table or broker.
//
// The fixed seed of -short must have every kind (TestShort_TheFixedSeedHasEveryKind): if it does not, try other seeds.
//
// # Left out
//
// Network namespaces, full disks, and clocks that are set while a server runs.
package main
