package wire

import (
	"slices"
	"strings"
)

// Ours reports whether a header belongs to the contract with receivers. It compares names without regard to case: some
// clients do.
func Ours(name string) bool {
	return hasPrefix(name, "ordered-") || strings.EqualFold(name, HeaderContentType)
}

// NATS reports whether a header is an order to a server of NATS: to roll up a subject, to expire, schedule, count or
// deduplicate a message, or to refuse it.
func NATS(name string) bool { return hasPrefix(name, "nats-") }

// PubSub reports whether an attribute belongs to Google: Pub/Sub refuses a message with such an attribute, and its
// clients obey googclient_….
func PubSub(name string) bool { return hasPrefix(name, "goog") }

// amqp lists the headers by which RabbitMQ or one of its plugins routes a message (CC, BCC), holds it back (x-delay),
// drops it (x-deduplication-header, and x-received-from, by which federation ends its loops), or filters a stream. It
// also lists those that RabbitMQ writes itself, which show where a message has been.
var (
	amqp         = []string{"cc", "bcc", "x-delay", "x-deduplication-header", "x-received-from", "x-death", "x-delivery-count"}
	amqpPrefixes = []string{"x-stream-", "x-opt-", "x-first-death-", "x-last-death-", "x-shovelled"}
)

// AMQP reports whether a header is an order to RabbitMQ, or could be mistaken for one that RabbitMQ writes. It
// compares names without regard to case, since plugins differ in that.
func AMQP(name string) bool {
	return slices.Contains(amqp, strings.ToLower(name)) ||
		slices.ContainsFunc(amqpPrefixes, func(prefix string) bool { return hasPrefix(name, prefix) })
}

// Any reports whether a header is one of all these, for a receiver of unknown kind.
func Any(name string) bool { return Ours(name) || NATS(name) || PubSub(name) || AMQP(name) }

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
