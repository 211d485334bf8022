package visible

import (
	"io"
	"os"
	"strings"
)

// IsTerminal reports whether somebody reads there what is written to w. The null device is taken for a terminal, which
// harms nobody.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Comment makes a comment of SQL of a text, which may hold line breaks of any kind.
func Comment(text string) string {
	return "-- " + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "\n-- ")
}
