// Package answer bounds how long callers wait for a database, and names the wait that took too long.
//
// # Nouns
//
//   - Connection: comes from the pool, or from the server. A pool that is in use makes a caller wait, too.
//   - Answer: comes back on an open connection.
//   - Knock: a new connection to a server whose answer does not come. It distinguishes a server that hangs from a
//     slow one.
//
// # Invariants
//
//   - Each question to a database ends by itself: by an answer, by the caller's context, or by ErrNone, which names
//     what the caller waited for and for how long.
//   - ErrSilent is an ErrNone: the server hangs. The pool's connections are given up then, as all of them lead to
//     that server.
//   - An error of connecting is one line, and names each cause once.
//   - The end of the caller's own context is passed on unchanged: ErrNone is a deadline of ours.
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
// How long each caller waits: the callers have constants for it. Retries.
package answer
