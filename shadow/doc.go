// Package shadow runs a sink without its receiver. For each record it writes the call that the sink would make into a
// table, and compares it with the call that another sink makes for the same record.
//
// # Nouns
//
//   - Call: what a sink sends for one record. A sinks.Renderer returns it without sending it.
//   - Sink: a processor.TxSink that records calls. With processor.InTx, a call is committed together with the advance of
//     the cursor.
//   - Other: the version that is live. Its receiver gets nothing from here.
//   - Table: one row for each process and record.
//
// # Diagram
//
//	records ──► sms ──────────────► receiver
//	   │         ┊ renderer
//	   │         ▼
//	   └──────► sms@shadow ──► table of calls ──► Compare
//
// # Invariants
//
//   - Nothing is sent: a Sink knows renderers only.
//   - Each record has one row. If it is recorded again, as after a seek, the row is replaced.
//   - Both calls are rendered from the same delivery, under the same name of a process. So they differ in nothing but what
//     the two sinks, and the ways in which they prepare records, make different.
//   - The table holds no credentials and no signatures.
//
// # Left out
//
// How the new version goes live. Its cursor has no part in that: see docs/read-models.md.
package shadow
