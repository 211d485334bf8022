// Package wire holds the contract between sinks and receivers: the headers that every sink sends (docs/wire.md), and
// the headers that no record may set at a receiver.
//
// The latter are those of the contract, and those that a broker takes for an order. A sink leaves such a header of a
// record out. So a hostile row can neither pose as the dispatcher nor lead its message elsewhere, and it does not
// stop its process either. The names of all brokers are here and not with each sink, because a sink that does not
// know its broker (watermill) leaves out all of them.
package wire
