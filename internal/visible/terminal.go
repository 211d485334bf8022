package visible

import (
	"io"
	"os"
	"strings"
)

// IsTerminal reports whether w is a terminal, where a person may read. It also takes the null device for a terminal,
// which does no harm.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Comment makes a comment of SQL from a text, which may contain line breaks of any kind.
func Comment(text string) string {
	return "-- " + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "\n-- ")
}
