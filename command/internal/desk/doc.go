// Package desk is where an operator sits: what one may ask about all processes, and what one may decide. It knows no
// HTTP. The console and the JSON API both stand on it.
//
// # Nouns
//
//   - Desk (desk.go): answers questions, and carries out decisions. There is one for all viewers of a daemon.
//   - Board (board.go, memory.go): what the last look at the database has shown, and what it showed before. A look is
//     made for all viewers at once, and only while somebody watches.
//   - Fleet (fleet.go): one Line for each process, those that need somebody first.
//   - Process (process.go): everything about one of them. Head is the record that is delivered next.
//   - Cause (cause.go): what keeps records waiting: the fence, the receiver, a limit, a pause, a missing worker …
//   - Search (find.go): chooses records by id, key or dedup key. Found has where they are in each process.
//   - Letters (letters.go): dead letters, in groups of errors that differ only in numbers and names.
//   - Audit (audit.go): everything that was done, and by whom.
//   - Order (decide.go): what an operator wants to be done. Preview shows what it would do, Decide does it.
//   - Sight (record.go): how much of a record a viewer may see.
//
// # Diagram
//
//	viewers ──► Fleet, Process, Watch ──► board ──► one look for all (two connections) ──► daemon.StatusReader
//	        ──► Find, Letters, Audit, Doctor, Tail ──────────► one question at a time ──► daemon
//	        ──► Preview ──► what it would do, Expect ──► Decide(Reason, Expect, Actor) ──► daemon.Operator, daemon.DeadLetters
//
// # Invariants
//
//   - However many viewers there are, there is one look at a time, and at most one in a second.
//   - A look never costs more than a part of the time: after a slow one the next one comes later.
//   - Every memory has a bound: of points, of spans, and of processes.
//   - Decide does nothing unless what it decides about is still what Preview showed (Expect).
//   - An answer contains a payload only for a viewer with Sight Full.
//   - An answer, and an error, contains no secret.
//
// # Left out
//
// Who may ask and who may decide: package admin. Pages: package console.
package desk
