package webhook

import (
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// identity is the dedup key in the form that headers carry. After the table's name it has no full stop: see the
// package comment.
func identity(d processor.Delivery) string {
	key := escape(d.DedupKey())
	table := escape(d.Table)
	row, ok := strings.CutPrefix(key, table)
	if !ok {
		table, row = "", key
	}
	if !strings.Contains(row, ".") {
		return key
	}
	return table + strings.ReplaceAll(row, ".", "%2E")
}

// escape turns any string into a header value, by the rule of the CloudEvents HTTP binding 1.0.2, section 3.1.3.2.
// Bytes that are not UTF-8 are escaped as they are.
func escape(value string) string {
	n := 0
	for i := range len(value) {
		if isEscaped(value[i]) {
			n++
		}
	}
	if n == 0 {
		return value
	}
	const hex = "0123456789ABCDEF"
	escaped := make([]byte, 0, len(value)+2*n)
	for i := range len(value) {
		if c := value[i]; isEscaped(c) {
			escaped = append(escaped, '%', hex[c>>4], hex[c&0xF])
		} else {
			escaped = append(escaped, c)
		}
	}
	return string(escaped)
}

func isEscaped(c byte) bool { return c <= ' ' || c >= 0x7F || c == '"' || c == '%' }
