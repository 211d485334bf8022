package visible

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// JSON returns a writer for JSON that is encoded already. It escapes hidden characters of its strings before they
// reach w. Each Write must have a whole text: encoding/json and slog do so.
func JSON(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.w.Write(EscapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapeJSON returns JSON without hidden characters within its strings. Line breaks and tabs between the strings
// stay. It returns the text itself if it has none.
func EscapeJSON(text []byte) []byte {
	at, size := nextHidden(text)
	if at < 0 {
		return text
	}
	escaped := bytes.NewBuffer(make([]byte, 0, len(text)+len(text)/8+64))
	for at >= 0 {
		escaped.Write(text[:at])
		r, _ := utf8.DecodeRune(text[at:])
		fmt.Fprintf(escaped, `\u%04x`, r)
		text = text[at+size:]
		at, size = nextHidden(text)
	}
	escaped.Write(text)
	return escaped.Bytes()
}

// nextHidden returns the place and the length of the first hidden character; -1 if there is none. Encoders escape
// characters below 0x20 themselves. All others begin with one of four bytes.
func nextHidden(text []byte) (at, size int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case 0x7f, 0xc2, 0xd8, 0xe2:
			if r, size := utf8.DecodeRune(text[i:]); Hidden(r) {
				return i, size
			}
		}
	}
	return -1, 0
}
