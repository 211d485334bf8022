package cursor

// Position says how far a process has come. It is opaque: minted by one
// source, which tags it with its kind, and ordered as bytes (COLLATE "C") in
// the order of the records. "" stands before the first record.
type Position string

// Epoch is the fencing token of a lease: it grows at every change of worker and
// never starts again.
type Epoch int64
