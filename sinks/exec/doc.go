// Package exec hands each record to a child process, as a line of JSON on its standard input. It takes the answer as
// a line of JSON from the child's standard output. So a sink can be written in any language.
//
// # Nouns
//
//   - Sink: one command, run as one child at a time, in a process group of its own.
//   - Line: a record for the child, in the form of package stdout.
//   - Answer: the child's reply on one line, with the record's dedup key and attempt.
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
// A line is an object and a line feed; package stdout lists its fields. An answer is a line as well, of at most 64
// KiB:
//
//	{"dedup_key": "…", "attempt": 1, "ok": true}
//	{"dedup_key": "…", "attempt": 1, "error": "why", "permanent": true, "retry_after": 30}
//
// permanent (the record can never succeed) and retry_after (in seconds) may be left out. Other fields are ignored.
// The child answers each line once, in the order of the lines, when its effect is durable. It writes nothing else to
// standard output, flushes each answer, and ends at the end of its input.
//
// # Invariants
//
//   - Answers count in order, and by their dedup keys and attempts. A record after the first failure is not
//     acknowledged, and an answer out of its turn acknowledges nothing. A child that writes a line too many gets no
//     more lines.
//   - With a window of 1 no line is written before all earlier lines are answered.
//   - After any doubt about a child its group is killed and none of its answers counts: a later attempt has a child of
//     its own.
//   - If the line of a record was written whole and not answered, its outcome is unknown (an error with Timeout()
//     true). If the line was not written whole, the record was not delivered.
//   - With Config.User the child has the user and groups of that account, and no right of root.
//   - There is no shell. The child has the environment that Config names. It has no file of this process except its
//     three pipes, and it gets no signals of a terminal.
//   - The child's output goes to logs and errors as cut lines, in bounded number. The data of the records that the
//     child has, and the values of Config.Env, are taken out.
//   - A call ends soon after its context does, no matter what the child does.
//
// # Left out
//
// Several children for one process; limits on the resources of a child; children that outlive their sink. If this
// process is killed with SIGKILL while a child hangs, the child hangs until it reads the end of its input. So an
// effect of it may come late, under an older epoch.
package exec
