// Package claimcheck keeps the objects of claim checks in a bucket of a cloud provider: see package claim. It is a module
// of its own, because the clients of buckets are large.
//
//	bucket, err := blob.OpenBucket(ctx, "s3://claims?region=eu-central-1")  // with _ "gocloud.dev/blob/s3blob"
//	outbox.New(outbox.Config{ClaimAbove: 256 << 10, Claims: claimcheck.New(bucket)})
//
// # Nouns
//
//   - Bucket: a place for objects, opened with gocloud.dev/blob. Its driver decides about durability.
//
// # Diagram
//
//	outbox, payload ── claim.Store ──► Bucket ──► gocloud.dev/blob ──► provider
//
// # Invariants
//
//   - No object is overwritten.
//   - A bucket that does not exist is an outage. It is not a missing object.
//
// # Left out
//
// Opening and closing buckets, and their credentials. The daemon opens buckets by the URL in its configuration: see module
// stores/buckets.
package claimcheck
