// Package buckets opens buckets of gocloud.dev/blob as object stores of the daemon. Its subpackages have one kind each,
// with its driver: import those that you need.
//
//	Files(bucket)                  archives of package retention, for programs that use the library
//	claimcheck.New(bucket)         claim checks, for the same
//	s3.Spec(), gs.Spec(), …        both, for the daemon
//
// # Nouns
//
//   - Kind: what a subpackage knows of its URLs, and how its driver opens one.
//   - Files: a retention.Shelf in a bucket.
//
// # Diagram
//
//	daemon ── stores.Spec ──► Kind ──► gocloud.dev/blob ──► driver ──► provider
//
// # Invariants
//
//   - A URL is checked before it is opened: an unknown parameter, a path or a login in it is an error.
//   - The parameter prefix is put before the name of each object.
//   - An error has no query of a URL, since a provider's token may be there.
//   - Credentials are looked for at each Open. A failure is not kept.
//
// # Left out
//
// Making buckets, and rights on them. Retries, except for those of the providers' clients within a call.
package buckets
