// Package secret removes configured secrets from the words of a receiver. Some receivers echo the request, and their
// words go to the log, the cursor's row, the audit and status.
//
// A secret is found letter by letter, and in any mixture of these forms, up to twice (an escape that is escaped
// itself): \u0041, \u{41}, \x41, \101 and \/ of JSON and other languages; %41 of a URL, and + for a space; &#65;,
// &#x41; and &amp; of HTML. It is also found in base64 of either alphabet, alone and anywhere within a longer text,
// and in hex, with line breaks or colons in between. A secret is also found if the end of the text cuts it off. It is
// not found in base64 or hex of another of these forms, nor after digests, compression or encryption.
//
// The record's contents are another idea: processor.Record.Redact takes them out. Quote does both.
package secret

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mask replaces a secret.
const Mask = "[secret]"

// minSecret is the shortest value that is removed. Short values, as in "?v=1", would be removed everywhere.
const minSecret = 4

// Set holds the secrets of one sink. The zero value has none. It is safe for concurrent use.
type Set struct{ needles []needle }

// maxForms bounds how many lines of a secret are looked for in base64 and hex.
const maxForms = 64

// needle is a text to be found.
type needle struct {
	text string
	kind kind
}

type kind int

const (
	plain    kind = iota
	inBase64      // the letters that all base64 texts with the secret share
	inHex
)

// New returns the set of all values except those that are too short to be a secret. In a value of several lines, such
// as a private key, each line is a secret of its own, because a receiver may quote it line by line.
func New(values ...string) Set {
	var s Set
	for _, value := range values {
		if len(value) < minSecret {
			continue
		}
		s.add(value)
		s.addForms(value)
		all := Lines(value)
		for i, line := range all {
			s.add(line)
			if i < maxForms {
				s.addForms(line)
			}
		}
	}
	// Of two needles that begin alike, the longer one must be removed.
	slices.SortFunc(s.needles, func(a, b needle) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), cmp.Compare(a.kind, b.kind))
	})
	s.needles = slices.Compact(s.needles)
	return s
}

func (s *Set) add(value string) { s.needles = append(s.needles, needle{value, plain}) }

func (s *Set) addForms(value string) {
	for _, core := range base64Cores(value) {
		s.needles = append(s.needles, needle{core, inBase64})
	}
	s.needles = append(s.needles, needle{hexOf(value), inHex})
}

// Replace returns a text with Mask in place of each secret. Of a text above 32 KiB it returns the beginning: the
// search needs a hundred times the text in memory, and a server may send megabytes.
func (s Set) Replace(text string) string {
	shown := cutAt(text, maxText)
	if len(s.needles) == 0 {
		return text[:shown] + rest(text, shown)
	}
	var b strings.Builder
	look, done := newSearch(text), 0
	for i := 0; i < shown; i++ {
		from, to := s.at(look, i, done)
		if look.steps < 0 {
			return b.String() + "[…]" // the text was made to keep the search busy
		}
		if to == 0 {
			continue
		}
		b.WriteString(text[done:from])
		b.WriteString(Mask)
		done, i = to, to-1
	}
	if done == 0 && shown == len(text) {
		return text
	}
	return b.String() + text[done:max(done, shown)] + rest(text, shown)
}

// Line returns a receiver's words as a part of a line: without the secrets, and with a space for each character that
// is not printable.
func (s Set) Line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return ' '
	}, s.Replace(text))
}

// Quote is Line for words that may also repeat a record. redact takes the record out (processor.Record.Redact). The
// secrets are taken out before and after that. A word of the record may be a part of a secret, and redact undoes
// escapes, in which a secret may have been hidden.
func (s Set) Quote(text string, redact func(string) string) string {
	return s.Line(redact(s.Replace(text)))
}

// at returns where the secret begins and ends that the search finds at i; 0, 0 if there is none.
func (s Set) at(look *search, i, done int) (from, to int) {
	for _, n := range s.needles {
		end := look.match(n, i)
		if end == 0 {
			continue
		}
		if n.kind != plain {
			return widen(look.text, i, end, done)
		}
		return i, end
	}
	return 0, 0
}

// widen includes the neighbouring letters, which contain some of the secret's bits.
func widen(text string, from, to, done int) (int, int) {
	for from > done && isBase64(text[from-1]) {
		from--
	}
	for to < len(text) && (isBase64(text[to]) || text[to] == '=') {
		to++
	}
	return from, to
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// Error returns an error whose text contains no secret. Error(nil) is nil.
func (s Set) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if masked := s.Replace(text); masked != text {
		return &maskedError{masked, err}
	}
	return err
}

type maskedError struct {
	text  string
	cause error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.cause }
