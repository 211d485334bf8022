package nats

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// maxSubject bounds a subject, in bytes. A line of the protocol may have 4,096 unless the server is configured
// otherwise, and the server ends the connection of a client that sends a longer one.
const maxSubject = 1024

// Faults of a subject. None of them quotes the subject, since part of it comes from a record.
var (
	errSubject  = errors.New("it is empty or too long, has spaces, wildcards or empty tokens, or is not UTF-8")
	errFence    = errors.New("it is the subject of a fence, where a message that is not a claim stops its process")
	errInternal = errors.New("it begins with $ or _INBOX, which the server and its clients use among themselves: " +
		"a message there can be a command, such as to purge a stream")
)

// subjectFault returns why no message can be published to a subject; nil if one can.
func subjectFault(subject string) error {
	if len(subject) > maxSubject || !utf8.ValidString(subject) {
		return errSubject
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || token == "*" || token == ">" || strings.ContainsFunc(token, isBlank) {
			return errSubject
		}
	}
	if isInternal(subject) {
		return errInternal
	}
	return nil
}

// isInternal reports whether a subject gives orders to servers ($JS.API, $SYS, $KV), or carries answers: of clients,
// of gateways, of services.
func isInternal(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return strings.HasPrefix(first, "$") || strings.HasPrefix(first, "_INBOX") || first == "_R_" || first == "_GR_"
}

func isBlank(r rune) bool { return r <= ' ' || r == 0x7F }

// takes reports whether one of the filters, which may have wildcards, has a subject.
func takes(filters []string, subject string) bool {
	for _, filter := range filters {
		if matches(strings.Split(filter, "."), strings.Split(subject, ".")) {
			return true
		}
	}
	return false
}

func matches(filter, subject []string) bool {
	for i, token := range filter {
		switch {
		case i == len(subject):
			return false
		case token == ">":
			return true
		case token != "*" && token != subject[i]:
			return false
		}
	}
	return len(filter) == len(subject)
}

// covering returns sets of subjects that take the subject of a record and those of other records, the best one first:
// the declared subjects, and subject with * for each value of a record. It returns none where subject has branches,
// or values of several tokens.
func (c Config) covering(subject string) (sets [][]string) {
	if c.Declare != nil && takes(c.Declare.Subjects, subject) {
		sets = append(sets, c.Declare.Subjects)
	}
	template, err := route.Tokens(c.Subject)
	if err != nil {
		return sets // New has refused it
	}
	if p := pattern(template.Skeleton("*")); takes([]string{p}, subject) {
		sets = append(sets, []string{p})
	}
	return sets
}

// shown returns the subject of a record as an error may name it.
func (c Config) shown(subject string) string {
	template, err := route.Tokens(c.Subject)
	if err != nil {
		return subject // New has refused it
	}
	return template.Shown(subject)
}

// pattern returns a subject with wildcards: only a whole token is one. The result never begins with a wildcard, which
// would take messages that others publish.
func pattern(text string) string {
	tokens := strings.Split(text, ".")
	for i, token := range tokens {
		if strings.Contains(token, "*") {
			tokens[i] = "*"
		}
	}
	if tokens[0] == "*" {
		return ""
	}
	return strings.Join(tokens, ".")
}

// merge adds filters to those of a stream. It leaves out a filter that another one includes: a stream has no two that
// overlap.
func merge(has, more []string) (kept, added []string) {
	for _, filter := range more {
		if !amongAny(has, filter) {
			added = append(added, filter)
		}
	}
	for _, filter := range has {
		if !amongAny(added, filter) {
			kept = append(kept, filter)
		}
	}
	return kept, added
}

// amongAny reports whether one of the filters takes everything that another filter takes.
func amongAny(filters []string, other string) bool {
	return slices.ContainsFunc(filters, func(filter string) bool {
		return (!strings.HasSuffix(other, ">") || strings.HasSuffix(filter, ">")) && takes([]string{filter}, other)
	})
}

// overlap reports whether a subject can match a filter of each of the two sets.
func overlap(some, others []string) bool {
	for _, a := range some {
		for _, b := range others {
			if meet(strings.Split(a, "."), strings.Split(b, ".")) {
				return true
			}
		}
	}
	return false
}

func meet(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == ">" || b[i] == ">":
			return true
		case a[i] != b[i] && a[i] != "*" && b[i] != "*":
			return false
		}
	}
	return len(a) == len(b)
}
