// Package sinktest holds every sink to the same promises, whatever protocol it
// speaks: what they are is what its tests are called.
//
// # Nouns
//
//   - Subject: a sink of one kind with a receiver of its own, real or speaking the
//     real protocol, and the means to look into that receiver and to break it.
//   - Message: what a receiver has, as a reader that is not ours sees it.
//
// # Diagram
//
//	Run ──► Subject.Sink ──► DeliverBatch ──► receiver
//	  └──────────────────── Subject.Received ◄──┘
package sinktest
