// Package daemon turns a configuration file into running processes, and answers
// an operator's questions about them.
//
// # Nouns
//
//   - Config: what the file says. Parse reads it and reports every fault at once,
//     with line and column.
//   - Crew: the processes of one daemon, in one run group with the signals.
//   - Settings: what of a configuration decides which records go where. A change
//     of it is noted in the audit of the cursor, so that two workers that differ
//     are found out.
//   - Status: how a process stands, how far behind it is, and who holds it back.
//   - Renewal: the configuration's text, to be read anew with what the files of its
//     references hold by now. Each process follows its own, as a rotation.
//   - Monitor: metrics, /healthz and /readyz, for who listens at RunConfig.Listen.
//   - Pulse: when something last happened in a process.
//   - Look: one question to the database how the processes stand, for the monitor.
//   - Count: one question how much stands behind a cursor. It may take long, and no
//     look waits for it.
//   - Finding: what the doctor found when it held the file against the database.
//   - Grants: what the roles of workers and of operators need, as SQL.
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
//   - A configuration that passes Parse is refused by no package it is handed to.
//   - No secret stands in an error, a log, a status or a finding.
//   - A sink is made anew between two calls, after the former one is closed. Where its
//     records go changes with a restart alone.
//   - A process that halts, and a database that is away, end nothing.
//   - Who asks the monitor waits for no database: it answers what the last look
//     found, and how old that is.
//   - The first signal lets calls in flight finish; the second ends the program
//     at once. Either way nothing is lost.
//   - An error that an operator sees ends with the next step.
//
// # Left out
//
// Flags, texts of help, and the exit of the program: see cmd/ordered-dispatcher.
package daemon
