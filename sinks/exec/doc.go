// Package exec hands each record to a child process, as a line of JSON on its
// standard input, and takes its answer as a line of JSON from its standard output:
// any language can be a sink.
//
// # Nouns
//
//   - Sink: one command, run as one child at a time, in a process group of its own.
//   - Line: a record for the child, in the form of package stdout.
//   - Answer: the child's word on one line, with its dedup key and attempt.
//   - Window: how many lines may wait for their answers at a time.
//
// # Diagram
//
//	DeliverBatch ──► child runs? else start it
//	                   │
//	                   ▼
//	              stdin ─ lines, at most window on their way ─► child
//	              stdout ◄─ answers, taken in order ───────────┘│
//	              logger ◄─ stderr, by lines ───────────────────┘
//	                   │
//	                   ├ ok ─────► next
//	                   ├ error ──► n acknowledged, error of the next
//	                   └ none in time, out of turn, no answer, ended
//	                        ──► the group is killed; the next attempt starts another child
//
// # Protocol
//
// A line is an object and a line feed; package stdout lists its fields. An answer is
// one, too, of at most 64 KiB:
//
//	{"dedup_key": "…", "attempt": 1, "ok": true}
//	{"dedup_key": "…", "attempt": 1, "error": "why", "permanent": true, "retry_after": 30}
//
// permanent (the record can never succeed) and retry_after (in seconds) may be left
// out, other fields are ignored. The child answers each line once, in the order of the
// lines, when its effect is durable. It writes nothing else to standard output,
// flushes each answer, and ends at the end of its input.
//
// # Invariants
//
//   - Answers count in order, and by their dedup keys and attempts: what is behind the
//     first failure is not acknowledged, and an answer out of its turn acknowledges
//     nothing. A child that writes a line too many is not spoken to again.
//   - With a window of 1 no line is written before all before it are answered.
//   - After any doubt about a child its group is killed and none of its answers counts:
//     a later attempt has a child of its own.
//   - A record whose line was written whole and not answered has an unknown outcome (an
//     error with Timeout() true). One whose line was not written whole was not delivered.
//   - With Config.User the child has the user and groups of that account, and no
//     right of root's.
//   - There is no shell. The child has the environment that Config names, no file of
//     this process but its three, and no terminal's signals.
//   - What the child says goes to logs and errors by lines that are cut, in bounded
//     number, without the data of the records that it has, and without the values of
//     Config.Env.
//   - A call ends soon after its context does, whatever the child does.
//
// # Left out
//
// Several children for one process; limits on what a child may use; children that
// outlive their sink: one that hangs while this process is killed with SIGKILL goes on
// hanging until it reads the end of its input, so an effect of it may come late, under
// an older epoch.
package exec
