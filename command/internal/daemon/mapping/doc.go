// Package mapping makes upcasters of the jq programs in a configuration.
//
//	upcast: {booking.created@1: '.seats = (.count // 1)'} ── Compile ──► upcast.Func
//
// Nouns: a mapping is a jq program that turns one JSON value into one other.
//
// Invariants: a mapping sees its input alone: no file, no variable of the environment, no second record. Its time and
// the size of its result are bounded. Its errors quote no data. Numbers that it does not change keep all their digits.
//
// Left out: a bound of the memory that a mapping takes while it runs. A mapping is trusted like code: it comes from the
// configuration.
package mapping
