package child

import (
	"bufio"
	"os"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	// MaxTogether is how many bytes of lines are searched for secrets and records at a time.
	MaxTogether = 4 << 10
	// MaxQuote bounds the quote of a child in an error, in bytes.
	MaxQuote = 1000

	maxLineBytes = 1 << 10 // that are read of a line
	lastLines    = 5       // that an error quotes
)

// ReadLines calls note with each line of an output until its end, and closes it. Of a long line, note gets only the
// beginning.
func ReadLines(output *os.File, note func(line string)) {
	defer output.Close()
	reader := bufio.NewReaderSize(output, maxLineBytes)
	for {
		line, more, err := reader.ReadLine()
		if err != nil {
			return
		}
		note(string(line))
		for more && err == nil {
			_, more, err = reader.ReadLine()
		}
	}
}

// Recent returns the last lines of some: those with which a secret in the next line may begin, and those for an error.
func Recent(lines []string) []string {
	for size, i := 0, len(lines)-1; i >= 0; i-- {
		if size += len(lines[i]) + 1; size > MaxTogether && len(lines)-i > lastLines {
			return slices.Clone(lines[i+1:])
		}
	}
	return lines
}

// LastWords returns the last lines of some as the end of an error, without secrets; "" if there are none. redact takes
// records out of a text; nil: there are none.
func (r *Redactor) LastWords(lines []string, redact func(text string) string) string {
	if len(lines) == 0 {
		return ""
	}
	lines = r.Next(nil, lines)
	lines = lines[max(0, len(lines)-lastLines):]
	return "; its last words: " + visible.Start(strings.Join(r.Clean(lines, redact), " | "), MaxQuote)
}

// separator separates lines. It is longer than any text between two words that are shown as one.
const separator = "\n\n\n\n"

// Clean takes the secrets and the records out of lines that have no folded secret, and makes them printable. It hands the
// lines to redact together, so that each record is read only once; nil: there are none. The text that is taken out may
// have been escaped, and the text that is unescaped is made printable again.
func (r *Redactor) Clean(lines []string, redact func(text string) string) []string {
	clean := make([]string, len(lines))
	for i, line := range lines {
		clean[i] = r.Line(line)
	}
	if redact == nil {
		return clean
	}
	clean = strings.Split(redact(strings.Join(clean, separator)), separator)
	for i, line := range clean {
		clean[i] = r.Line(line)
	}
	return clean
}
