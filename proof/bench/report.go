package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// row is a line of the table.
type row struct {
	name    string // of the measurement
	what    string // is measured
	value   spread // what is held against the target
	unit    string // of the value; "" for a ratio
	target  target
	figures string // absolute, for information
}

// target bounds the median of a value. The zero value is none.
type target struct {
	bound float64
	is    direction
}

type direction int

const (
	none direction = iota
	atLeast
	below
)

// shown is the target as text, and whether a value meets it.
func (t target) shown(value float64, unit string) (text, verdict string) {
	var met bool
	switch t.is {
	case atLeast:
		text, met = "≥ ", value >= t.bound
	case below:
		text, met = "< ", value < t.bound
	default:
		return "—", "—"
	}
	text += strconv.FormatFloat(t.bound, 'f', -1, 64) + unit
	if met {
		return text, "met"
	}
	return text, "**below target**"
}

// report prints the machine and the table as Markdown.
func report(w io.Writer, machine []fact, rows []row) error {
	var b strings.Builder
	for _, f := range machine {
		fmt.Fprintf(&b, "- %s: %s\n", f.name, f.value)
	}
	b.WriteString("\n| | measured | median (lowest–highest) | target | | in absolute figures |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		text, verdict := r.target.shown(r.value.median, r.unit)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.name, r.what, r.shown(), text, verdict, r.figures)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shown is the value as text; one that was taken once has no range.
func (r row) shown() string {
	v := r.value
	if r.unit != "" {
		return figure(v.median) + r.unit
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", v.median, v.low, v.high)
}

// figure prints a number with three significant digits, and whole numbers in full with commas.
func figure(value float64) string {
	switch {
	case value >= 100:
		digits := strconv.FormatFloat(value, 'f', 0, 64)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	case value >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	default:
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
}
