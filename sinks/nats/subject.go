package nats

import (
	"strings"
	"unicode/utf8"
)

// maxSubject bounds a subject, in bytes: a line of the protocol has 4,096 unless the
// server was told otherwise, and it ends the connection of who sends a longer one.
const maxSubject = 1024

// validSubject reports whether a message can be published to a subject.
func validSubject(subject string) bool {
	if len(subject) > maxSubject || !utf8.ValidString(subject) {
		return false
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || token == "*" || token == ">" || strings.ContainsFunc(token, isBlank) {
			return false
		}
	}
	return true
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
