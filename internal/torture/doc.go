// Command torture runs real daemons on a real PostgreSQL, breaks everything around them by a seeded schedule, and judges
// by what everybody noted whether the dispatcher kept its promises:
//
//	go run ./internal/torture -seed 7 -for 10m      a campaign; the same seed gives the same schedule
//	go run ./internal/torture -short                one fixed and one random seed, as in CI
//	go run ./internal/torture -judge DIR            judges a kept history again
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
//   - Kind: one way to break something, and to mend it again.
//   - Nemesis: runs the plan's faults, each track for itself.
//   - Watcher: asks how the processes stand, as an operator and as a Prometheus do.
//   - Script: what the receiver does with the next attempt of a process instead of applying and answering it.
//
// # Invariants
//
//   - The judge sees histories only; nothing that the workers say of themselves excuses them.
//   - A fault is noted before it is inflicted, and as missed if it met nobody.
//   - Nothing outlives the program: server and workers run in directories of package throwaway.
//
// # Left out
//
// Network namespaces, full disks, clocks that are set, and asynchronous failover, which loses commits by design.
package main
