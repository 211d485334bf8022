package secret

import "strings"

// minLine keeps the words of a secret of several lines that are none, as "{" is, from
// being taken out everywhere.
const minLine = 8

// lines are those of a value of several that may be secret by themselves. In JSON a
// line break is written \n.
func lines(value string) (all []string) {
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

// isFrame reports whether a line is the first or the last one of PEM, the same in each.
func isFrame(line string) bool {
	return strings.Contains(line, "-----BEGIN ") || strings.Contains(line, "-----END ")
}
