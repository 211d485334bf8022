// Package prepared sends statements to a PostgreSQL session in one network flush. It prepares them if the session is
// known to be only ours.
//
// # Nouns
//
//   - Statement: one SQL command with its arguments. The server infers the types of its parameters.
//   - Own session: a direct connection. A prepared statement is session state, which a pooler in transaction mode
//     would hand to another client.
//
// # Diagram
//
//	Ready ── own session? ──► prepare what is not yet, once for each connection
//	             │ no
//	             ▼
//	Exec  ── Bind, Execute  |  Parse, Bind, Execute ──► one Sync ──► Results
//
// # Invariants
//
//   - The package finds out once for each connection whether it goes through a pooler. A direct connection is
//     greeted by the backend that serves it, with that backend's process id (BackendKeyData). A pooler has no
//     backend to offer yet, so it makes up a number.
//   - A connection whose prepared statements are gone (DISCARD ALL) or of another shape (ALTER TABLE) is closed; the
//     next one prepares anew.
//
// # Left out
//
// Transactions, retries, and the meaning of statements.
package prepared
