// Package answer bounds how long a database is waited for, and names the wait that took too long.
//
// # Nouns
//
//   - Connection: what the pool gives, or the server grants. A pool that is in use makes a caller wait, too.
//   - Answer: what comes back on a connection that is there.
//   - Knock: a new connection to a server whose answer does not come, to tell one that hangs from one that is slow.
//
// # Invariants
//
//   - Each question to a database ends by itself: by an answer, by the caller's context, or by ErrNone, which says what
//     was waited for and for how long.
//   - ErrSilent is an ErrNone: the server hangs. The pool's connections are given up then, as its other ones lead there.
//   - The end of the caller's own context is passed on as it is: ErrNone is a deadline of ours.
//
// # Diagram
//
//	OnConn ── Conn ──► Within ──► Heard ──► f(ctx, conn)
//	           │          │         │
//	           │          │         └ ErrSilent: nothing for 5 s, and a knock is not answered for 3 s
//	           └ ErrNone  └ ErrNone, and pgx closes the connection
//
// # Left out
//
// How long each caller waits: the callers have constants for that. Retries.
package answer
