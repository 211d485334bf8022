package nats

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// maxSubject bounds a subject, in bytes: a line of the protocol has 4,096 unless the
// server was told otherwise, and it ends the connection of who sends a longer one.
const maxSubject = 1024

// Faults of a subject. None quotes it, since a record has a part in it.
var (
	errSubject  = errors.New("it is empty or too long, has spaces, wildcards or empty tokens, or is not UTF-8")
	errFence    = errors.New("it is the subject of a fence, where a message that is no claim stops its process")
	errInternal = errors.New("it begins with $ or _INBOX, as what the server and its clients say among themselves does: " +
		"a message there can be an order, such as to purge a stream")
)

// subjectFault says why no message is published to a subject; nil if one can be.
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

// isInternal: subjects by which servers are told what to do ($JS.API, $SYS, $KV),
// and those of answers: of clients, of gateways, of services.
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
