// Package daemon turns a configuration file into running processes, and answers
// an operator's questions about them.
//
// # Nouns
//
//   - Config: the content of the file. Parse reads it and reports every fault at once, with line and column.
//   - Crew: the processes of one daemon, in one run group with the signals.
//   - Settings: the part of a configuration that decides which records go where. The daemon notes a change of it in the
//     audit of the cursor, so that two workers with different settings are found.
//   - Status: the state of a process, how far it lags, and which transaction holds it back.
//   - Renewal: the configuration's text, which is read again with the present content of the files that its references
//     name. Each process follows its own files, as a rotation.
//   - Monitor: metrics, /healthz and /readyz, served at RunConfig.Listen.
//   - Pulse: when something last happened in a process.
//   - Look: one question to the database about the state of the processes, for the monitor.
//   - Count: one question how many records wait after a cursor. It may take long, and a look never waits for it.
//   - Finding: a fault that the doctor found when it compared the file with the database.
//   - Grants: the rights that the roles of workers and of operators need, as SQL.
//
// # Diagram
//
//	file ──► Parse ──► Config ──┬─► Run ──► crew ──┬► processor.Process, one each
//	                            │                  └► monitor ◄── events, looks
//	                            ├─► Doctor ──► findings with their fixes
//	                            ├─► Grants ──► SQL for the owner of the tables
//	                            └─► StatusReader ──► statuses
//
// # Invariants
//
//   - If Parse accepts a configuration, every package that gets it accepts it, too.
//   - An error, a log line, a status or a finding never contains a secret.
//   - A sink is made anew between two calls, after the former one is closed. Only a restart changes where its records go.
//   - Neither a process that halts nor a database that is away ends the daemon.
//   - The monitor never waits for the database. It answers with the result of the last look, and with its age.
//   - The first signal lets calls in flight finish. The second ends the program at once. In both cases nothing is lost.
//   - An error that an operator sees ends with the next step.
//
// # Left out
//
// The flags, the help texts and the exit of the program are in package command.
package daemon
