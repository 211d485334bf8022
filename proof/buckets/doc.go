// Package buckets tests the shipped program with object stores, against a server that speaks the protocol of S3. It has
// only tests.
//
//	outbox.Add ──► bucket, row ──► daemon, which reads the bucket ──► receiver
//	prune ──► bucket: files of rows ──► deleted rows
//
// Nouns: the store is a server of gofakes3 in the test's process. It refuses logins other than its own, and a fault
// makes it refuse, hang or break off.
//
// Invariants: an object that is missing or altered is the record's failure. A store that is away, refuses, or has no such
// bucket is not: the record waits, and nothing passes it. No row is deleted before its file is in the bucket. No secret
// is printed.
//
// Left out: Google's and Azure's protocols. What is common to all kinds is tested in stores/buckets.
package buckets
