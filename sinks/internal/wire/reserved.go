// Package wire has the contract between sinks and receivers, and the names of headers that no record may set at a receiver:
// those of the dispatcher's own contract, and those that a broker takes for an
// order. A sink leaves such a header of a record out, so that a hostile row neither
// poses as the dispatcher nor leads its message elsewhere, and does not stop its
// process either.
package wire

import (
	"slices"
	"strings"
)

// Ours reports whether a header belongs to the contract with receivers.
func Ours(name string) bool { return hasPrefix(name, "ordered-") }

// NATS reports whether a header is an order to a server of NATS: to roll up a
// subject, to expire, schedule, count or deduplicate a message, or to refuse it.
func NATS(name string) bool { return hasPrefix(name, "nats-") }

// PubSub reports whether an attribute is one of Google's: Pub/Sub refuses a message
// with such a one, and its clients obey googclient_….
func PubSub(name string) bool { return hasPrefix(name, "goog") }

// amqp are the headers by which RabbitMQ or one of its plugins routes a message
// (CC, BCC), holds it back (x-delay), drops it (x-deduplication-header, and
// x-received-from, by which federation ends its loops), or filters a stream; and
// those that it writes itself, which say where a message has been.
var (
	amqp         = []string{"cc", "bcc", "x-delay", "x-deduplication-header", "x-received-from", "x-death", "x-delivery-count"}
	amqpPrefixes = []string{"x-stream-", "x-opt-", "x-first-death-", "x-last-death-", "x-shovelled"}
)

// AMQP reports whether a header is an order to RabbitMQ, or passes for its own word.
// Names are compared without regard to case, since plugins differ in that.
func AMQP(name string) bool {
	return slices.Contains(amqp, strings.ToLower(name)) ||
		slices.ContainsFunc(amqpPrefixes, func(prefix string) bool { return hasPrefix(name, prefix) })
}

// Any reports whether a header is one of all these, for a receiver of a kind that is
// not known.
func Any(name string) bool { return Ours(name) || NATS(name) || PubSub(name) || AMQP(name) }

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
