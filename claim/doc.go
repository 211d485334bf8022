// Package claim keeps large payloads outside of the table (a claim check). The producer puts the payload into an object
// store before it inserts the row. The row holds a reference, which the dispatcher or the receiver resolves.
//
// # Nouns
//
//   - Object: a payload under a name. It is written once, and never changed.
//   - Store: where objects are. Dir is a directory. Package claimcheck has buckets of cloud providers.
//   - Reference: the name of an object, its size and its SHA-256. It is the payload of the row, as JSON. The row's header
//     Header is the name of the object, so that SQL finds references in any table.
//   - Orphan: an object that no row refers to. A transaction that is rolled back leaves one.
//
// # Diagram
//
//	payload ── Put ──► Store ──────────── Reference.Resolve ──► payload ──► sink
//	              └─► Reference ── INSERT ──► row ─┘
//	                     Collect removes what no row refers to
//
// # Invariants
//
//   - The object is durable before the row is inserted. So a committed row has its object.
//   - The name of an object is random. No writer can overwrite the object of another one, or of its own earlier attempt.
//   - A payload that is not the one that was put is never returned: ErrAltered. One that is gone is ErrMissing.
//     Any other error of a store is an outage.
//   - A reference comes from a row, so it is hostile: a name that is not one of ours reaches no store.
//   - Collect removes no object to which a row refers, and none that is younger than its time.
//
// # Left out
//
// Encryption, and removing objects of delivered rows: once the rows are deleted, their objects are orphans.
package claim
