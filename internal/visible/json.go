package visible

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// JSON is a writer of JSON that is encoded already: hidden characters of its strings
// are escaped before they reach w. It takes whole texts: encoding/json and slog write
// each of theirs at once.
func JSON(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.w.Write(EscapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapeJSON returns JSON without hidden characters within its strings: line breaks
// and tabs between them stay. It is the text itself if it has none.
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

// nextHidden is the first hidden character and its length; -1 if there is none.
// Encoders escape those below 0x20 themselves. All others have one of four first bytes.
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
