// Package daemon turns a configuration file into running processes, and answers
// an operator's questions about them.
//
// # Nouns
//
//   - Config (config.go): the content of the file. Parse (parse.go, sink.go) reads it and reports every fault at once,
//     with line and column. build.go makes processes of it.
//   - Crew (crew.go, run.go): the processes of one daemon, in one run group with the signals (signals.go).
//   - Settings (configured.go): the part of a configuration that decides which records go where. The daemon notes a
//     change of it in the audit of the cursor, so that two workers with different settings are found.
//   - Status (status.go): the state of a process, how far it lags, and what holds it up (status_hold.go, writer.go,
//     long_holders.go).
//   - Renewal (renewal.go): the configuration's text, which is read again with the present content of the files that its
//     references name. Each process follows its own files, as a rotation, and its sink is made anew (renewed_sink.go).
//   - Monitor (monitor.go): metrics, /healthz and /readyz (health.go), served at RunConfig.Listen (listen.go).
//   - Pulse (health.go): when something last happened in a process.
//   - Look (look.go): one question to the database about the state of the processes, for the monitor.
//   - Count (count.go): one question how many records wait after a cursor. It may take long, and a look never waits for
//     it.
//   - Guard (partition_guard.go): notes which partitions hold records that are not delivered.
//   - Notifier (notifier.go, notify_due.go, notify_rows.go): sends the targets of the file messages about alarms, once
//     over all workers.
//   - Operator (operator.go, next_step.go): a decision of an operator, and the next step where it is refused.
//   - Finding (doctor.go): a fault that the doctor found when it compared the file with the database.
//   - Records (records.go): shows again what a process has delivered, for a command or for a receiver that asks
//     (records_http.go).
//   - Finder (find.go): says where one record is in each process. Tail (tail.go) follows what happens to a process, and a
//     Trial (trial.go) sends one test through its sink.
//   - Grants (grants.go): the rights that the roles of workers and of operators need, as SQL.
//
// # Diagram
//
//	file ──► Parse ──► Config ──┬─► Run ──► crew ──┬► processor.Process, one each
//	                            │                  └► monitor ◄── events, looks
//	                            ├─► Doctor ──► findings with their fixes
//	                            ├─► Grants ──► SQL for the owner of the tables
//	                            └─► StatusReader ──► statuses
//
// # Shutdown
//
//  1. The first signal, an error of a process, or the end of a drain ends the crew's context (signals.go, run.go).
//  2. Each process begins no other record. A call in flight has RunConfig.Grace (shift.go in package processor).
//  3. What was acknowledged is written to the cursor, and the lease is given back. What the worker saw of the server's
//     clock is written to the row: 3 s at most (clock.go there).
//  4. The monitor stops to serve, and the sinks are closed (build.go): 5 s at most for a child of exec.
//  5. What has not ended by then is ended by force, as by a second signal (signals.go). Its record comes again.
//
// # Invariants
//
//   - If Parse accepts a configuration, every package that gets it accepts it, too.
//   - An error, a log line, a status or a finding never contains a secret.
//   - A sink is made anew between two calls, after the former one is closed. Only a restart changes where its records go.
//   - Neither a process that halts nor a database that is away ends the daemon.
//   - Of several workers, one sends a target the message about an alarm. A recovery is told only after its alarm.
//   - The monitor never waits for the database. It answers with the result of the last look, and with its age.
//   - The first signal lets calls in flight finish. The second ends the program at once. In both cases nothing is lost.
//   - An error that an operator sees ends with the next step.
//
// # Left out
//
// The flags, the help texts and the exit of the program are in package command.
package daemon
