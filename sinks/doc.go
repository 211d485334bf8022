// Package sinks is what a sink and the daemon know of each other. A kind of sink is one folder: a plain Config struct, the
// sink itself, and a Spec that the program registers with command.Main. The daemon knows sinks by their Spec alone.
//
//	main.go:  command.Main(kafka.Spec(), webhook.Spec(), mine.Spec())
//
//	dispatcher.yaml ──▶ Spec.New ──▶ Config, its fields filled in ──▶ Validate ──▶ Open ──▶ Opened: the sink
//	                                   └──▶ Settings (the audit), Checked (doctor), and the other abilities below
//
// The fields of a Config are the keys below the kind's name in the file: see package knob for their tags. The daemon reads
// them strictly, reports errors with line and column, and fills in no default: New of the sink does, for users of the
// library as well.
//
// A Config may have more abilities. Each is a small interface that the daemon looks for: Checked, Confidential, Exclusive,
// Exposed, Filed, Posted.
//
// A sink on a broker is a Go module of its own, so that users of the library follow the clients that they use, and no
// others. The light sinks are in the root module.
//
// Invariants:
//
//   - Neither Settings nor an error holds a secret.
//   - Open connects to nothing: a receiver that is away is an error of the first delivery, which is tried again.
//   - What a sink holds is closed by the daemon if it is an io.Closer.
//
// Left out: the delivery of records. See package processor.
package sinks
