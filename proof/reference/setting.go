package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// form is how a value is written.
type form int

const (
	text     form = iota
	number        // a whole number, or a percentage
	duration      // a number with a unit
	truth         // one of two words
	list          // of texts
	names         // names with texts
	keys          // the settings below it
	entries       // names of one's own, each with the settings below
	oneOf         // one of the settings below
)

// setting is one key of the file.
type setting struct {
	knob.Knob
	form  form
	text  string // its meaning, with links from the root of the repository
	page  string // of a kind of sink
	below []setting
}

// named returns the setting of a name among those below.
func (s setting) named(name string) setting {
	for _, other := range s.below {
		if other.Name == name {
			return other
		}
	}
	return setting{}
}

// words are what the value may be; none if it may be more than words.
func (s setting) words() []string {
	if s.form == truth {
		return s.Words()
	}
	return s.OneOf
}

// meaning is all that is to be said about the setting: its text, words, default and bounds.
func (s setting) meaning() string {
	parts := []string{s.text}
	if words := s.unsaid(); len(words) > 0 {
		parts = append(parts, knob.Either(words)+".")
	}
	switch {
	case s.Required:
		parts = append(parts, "Required.")
	case s.defaults() != "":
		parts = append(parts, "Default: "+s.code(s.defaults())+".")
	}
	if bounds := s.bounds(); bounds != "" {
		parts = append(parts, bounds)
	}
	return strings.Join(parts, " ")
}

// unsaid are the words, as code, if the text does not have all of them.
func (s setting) unsaid() []string {
	var quoted []string
	said := true
	for _, word := range s.words() {
		quoted = append(quoted, "`"+word+"`")
		said = said && strings.Contains(s.text, word+"`")
	}
	if said || s.form == truth && s.literal(s.True) != s.True { // true or false
		return nil
	}
	return quoted
}

// defaults is the default as it is written in the file; "" if there is none, or only the text has it.
func (s setting) defaults() string {
	switch {
	case s.form == truth:
		return s.False
	case s.form == number && s.Default != "":
		return s.shown(s.Default)
	default:
		return s.Default
	}
}

// bounds is a sentence on the bounds; "" if there are none.
func (s setting) bounds() string {
	switch {
	case s.Min != "" && s.Max != "":
		return "From " + s.code(s.shown(s.Min)) + " to " + s.code(s.shown(s.Max)) + "."
	case s.Min != "":
		return "At least " + s.code(s.shown(s.Min)) + "."
	case s.Max != "":
		return "At most " + s.code(s.shown(s.Max)) + "."
	default:
		return ""
	}
}

// code is a value as code, with its size if it is one of bytes.
func (s setting) code(value string) string {
	code := "`" + value + "`"
	n, err := strconv.Atoi(value)
	if err != nil || !strings.HasSuffix(s.Name, "bytes") {
		return code
	}
	for _, unit := range []struct {
		bytes int
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%s (%d %s)", code, n/unit.bytes, unit.name)
		}
	}
	return code
}

// shown is the number of a tag as it is written in a file.
func (s setting) shown(tag string) string {
	if _, err := strconv.Atoi(strings.ReplaceAll(tag, "_", "")); s.form != number || err != nil {
		return tag // a duration, or the name of another setting
	}
	if tag = strings.ReplaceAll(tag, "_", ""); s.Percent {
		return tag + "%"
	}
	return tag
}

// bound is the number of a bound of one of the settings below, and whether there is one. A bound that is another setting
// has that one's bound, by of.
func (s setting) bound(tag string, of func(setting) string) (int64, bool) {
	if other := s.named(tag); other.Name != "" {
		tag = of(other)
	}
	if d, err := time.ParseDuration(tag); err == nil {
		return int64(d), true
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(tag, "_", ""), 10, 64)
	return n, err == nil
}
