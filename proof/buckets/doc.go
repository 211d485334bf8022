// Package buckets tests the shipped program with object stores, against servers that speak the protocols of S3 and of
// Google. It has only tests.
//
//	outbox.Add ──► bucket, row ──► daemon, which reads the bucket ──► receiver
//	prune ──► bucket: files of rows ──► deleted rows
//
// Nouns: the store is a bucket of gofakes3, or of fake-gcs-server, in the test's process. The first refuses logins other
// than its own, and a fault makes it refuse, hang or break off.
//
// Invariants: an object that is missing or altered is the record's failure. A store that is away, refuses, or has no such
// bucket is not: the record waits, and nothing passes it. No row is deleted before its file is in the bucket. No secret
// is printed.
//
// Left out: Azure's protocol. What is common to all kinds is tested in stores/buckets.
package buckets
