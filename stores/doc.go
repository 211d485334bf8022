// Package stores is the contract between object stores and the daemon. The payloads of claim checks and the files of
// archives may be in one. The daemon knows a kind of store by its Spec alone, which the program registers with
// command.Program.
//
//	main.go:  command.Program{Stores: []stores.Spec{s3.Spec(), file.Spec()}}.Main()
//
//	dispatcher.yaml ── s3://bucket?region=… ──► Spec.Check, without the network
//	                                       └──► Spec.Open ──► Opened: Objects, Files
//
// # Nouns
//
//   - Spec: a kind of store, chosen by the scheme of a URL.
//   - Opened: a store that can be used. Its Objects are for claim checks, its Files for archives.
//
// # Invariants
//
//   - Credentials come from the environment, as the client of the store finds them. They are never in a URL.
//   - No error holds a secret.
//   - Check needs no network. Open may look for credentials. An error of Open is an outage, and Open is called again.
//   - Each call ends with its context.
//
// # Left out
//
// The stores themselves: module stores/buckets has those of package gocloud.dev/blob. It is a module of its own,
// because the clients of buckets are large. A directory needs no Spec: the daemon knows it.
package stores
