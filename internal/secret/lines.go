package secret

import "strings"

// minLine is the shortest line of a secret of several lines that is removed by itself. Shorter ones, such as "{", are
// not secret.
const minLine = 8

// Lines returns the lines of a value of several lines that may be secret by themselves; nil for any other value. JSON
// writes a line break as \n.
func Lines(value string) (all []string) {
	value = strings.ReplaceAll(strings.ReplaceAll(value, `\r`, "\r"), `\n`, "\n")
	if !strings.Contains(value, "\n") {
		return nil
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= minLine && !isFrame(line) {
			all = append(all, line)
		}
	}
	return all
}

// isFrame reports whether a line is the first or the last one of PEM, which is the same in each file.
func isFrame(line string) bool {
	return strings.Contains(line, "-----BEGIN ") || strings.Contains(line, "-----END ")
}
