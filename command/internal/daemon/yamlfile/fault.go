package yamlfile

import (
	"fmt"
	"strings"
)

// Error holds every fault of a file.
type Error struct {
	Name   string
	Faults []Fault
}

// Fault is a mistake at a place in the file.
type Fault struct {
	// Line and Column count from 1, the column in characters.
	Line, Column int
	Message      string

	path   string // of the value, with dots between the keys; "": the file
	key    string // at the place, if the message has it
	source string // the line, without its secrets
	caret  int    // the column in it; 0: none
}

// Error lists the faults, each with its place and its line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, fault := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.Name, fault.Line, fault.Column, fault.Message)
		if strings.TrimSpace(fault.source) == "" {
			continue
		}
		fmt.Fprintf(&b, "\n%6d | %s", fault.Line, fault.source)
		if fault.caret > 0 {
			fmt.Fprintf(&b, "\n       | %s^", indent(fault.source, fault.caret-1))
		}
	}
	return b.String()
}

// indent returns white space as wide as the first n characters of a line: tabs stay tabs.
func indent(line string, n int) string {
	var b strings.Builder
	for i, r := range []rune(line) {
		if i == n {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}
