package cursor

// Position is how far a process has come. It is opaque: one source makes it, and tags it with its kind.
// Positions sort as bytes (COLLATE "C"), in the order of the records. "" is before the first record.
type Position string

// Epoch is the fencing token of a lease. It grows at every change of worker, and at an operator's resume, retry,
// skip or seek. It never starts again.
type Epoch int64
