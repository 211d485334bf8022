// Package sinktest checks that every sink keeps the same promises, in any protocol. The names of its
// tests are these promises. For a sink's own tests it has Made, Deliver, Delivered, Under and Class.
//
// # Nouns
//
//   - Subject: a sink of one kind with a receiver of its own, which is real or speaks the real protocol, and functions
//     to look into that receiver and to break it.
//   - Message: one delivery in the receiver, as a reader that is not ours sees it.
//
// # Diagram
//
//	Run ──► Subject.Sink ──► DeliverBatch ──► receiver
//	  └──────────────────── Subject.Received ◄──┘
package sinktest
