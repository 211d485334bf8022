// Package upcast turns old payloads into the current shape between the source and the sink. So a receiver only knows
// the current version of each type, and rows never change.
//
// # Nouns
//
//   - Name and version: a record's Type is booking.created@2. A Type without a version is version 1.
//   - Upcaster: a function that makes the payload of the next version from the payload of one.
//   - Chain: the upcasters of one name. It ends with the current version.
//
// # Diagram
//
//	booking.created@1 ── From(…, 1, f) ──► @2 ── From(…, 2, g) ──► booking.created@3, the current version ──► sink
//
// # Invariants
//
//   - The record leaves with the Type of the current version, such as booking.created@3, whichever version it had.
//   - A chain has no gap: New refuses one.
//   - A record is not passed on if its version is newer than the current one, or older than the oldest upcaster, or if
//     an upcaster fails. That is the record's failure: it names the type and the version, and quotes none of its data.
//   - A record of a name without upcasters passes unchanged, and so does its Type.
//
// # Left out
//
// Splitting or dropping records. Downcasting. Checking payloads against a schema.
package upcast
