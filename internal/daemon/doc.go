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
//   - Finding: what the doctor found when it held the file against the database.
//
// # Diagram
//
//	file ──► Parse ──► Config ──┬─► Run ──► crew ──► processor.Process, one each
//	                            ├─► Doctor ──► findings with their cures
//	                            └─► StatusReader ──► statuses
//
// # Invariants
//
//   - A configuration that passes Parse is refused by no package it is handed to.
//   - No secret stands in an error, a log, a status or a finding.
//   - A process that halts, and a database that is away, end nothing.
//   - The first signal lets calls in flight finish; the second ends the program
//     at once. Either way nothing is lost.
//   - An error that an operator sees ends with the next step.
//
// # Left out
//
// Flags, texts of help, and the exit of the program: see cmd/ordered-dispatcher.
package daemon
