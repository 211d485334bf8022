// Package sinks is the contract between sinks and the daemon. A kind of sink is one folder: a plain Config struct,
// the sink itself, and a Spec that the program registers with command.Main. The daemon knows sinks only by their
// Spec.
//
//	main.go:  command.Main(kafka.Spec(), webhook.Spec(), mine.Spec())
//
//	dispatcher.yaml ──▶ Spec.New ──▶ Config, its fields filled in ──▶ Validate ──▶ Open ──▶ Opened: the sink
//	                                   └──▶ Settings (the audit), Checked (doctor), and the other abilities below
//
// The fields of a Config are the keys below the kind's name in the file: see package knob for their tags. The daemon
// reads them strictly and reports errors with line and column. It fills in no default: New of the sink does that, for
// users of the library as well. The key window has a meaning that the daemon knows: how many records may be on their
// way. It may not be above the process's checkpoint.
//
// A Config may have more abilities. Each is a small interface that the daemon looks for: Checked, Confidential,
// Enveloped, Exclusive, Exposed, Filed, Posted, Privileged, PrivilegedElsewhere, Untestable. A sink may be Pending, a Renderer, and
// an io.Closer.
//
// WriteLine writes a record for a receiver that asks for it.
//
// A sink for a broker is a Go module of its own. So users of the library depend only on the clients that they use.
// The light sinks are in the root module.
//
// Invariants:
//
//   - Neither Settings nor an error holds a secret.
//   - Open connects to nothing. If a receiver is away, that is an error of the first delivery, which is tried again.
//   - If a sink is an io.Closer, the daemon closes it.
//
// Left out: the delivery of records. See package processor.
package sinks
