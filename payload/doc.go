// Package payload makes the payloads of records whole again between the source and the sink: it resolves claim checks
// and decompresses. Each function returns a processor.Prepare.
//
// # Nouns
//
//   - Claim: a payload that is a reference to an object: see package claim.
//   - Encoding: the header content-encoding of a row, as HTTP has it. zstd is known.
//   - Whole: a payload that is neither.
//
// # Diagram
//
//	source ── row ──► Resolve ──► Decompress ──► upcast ──► sink
//
// # Invariants
//
//   - A payload grows to at most as many bytes as the caller allows.
//   - A record without such a header passes unchanged.
//   - An error quotes nothing of the record. One that is about the record is marked with processor.Permanent.
//
// # Left out
//
// Writing: see package outbox. Other encodings.
package payload
