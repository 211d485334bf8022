package sinks

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// WriteLine writes a delivery to a sink as one line of JSON, for a receiver that asks for it. Its members are the names
// of docs/wire.md with their values as text, then headers, and the bytes that the sink would send: body has them as a
// string, or else body_base64, if they are not UTF-8. Each Write to w has whole characters.
func WriteLine(w io.Writer, to Config, d processor.Delivery) error {
	body, contentType := []byte(d.Payload), wire.ContentType
	if e, ok := to.(Enveloped); ok {
		body, contentType = e.Envelope(d)
	}
	l := line{w: w}
	separator := "{"
	wire.Each(d, func(name, value string) {
		if name == wire.HeaderContentType {
			value = contentType
		}
		l.raw(separator)
		l.text([]byte(name))
		l.raw(":")
		l.text([]byte(value))
		separator = ","
	})
	l.raw(`,"headers":`)
	separator = "{"
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		l.raw(separator)
		l.text([]byte(name))
		l.raw(":")
		l.text([]byte(d.Headers[name]))
		separator = ","
	}
	if len(d.Headers) == 0 {
		l.raw("{")
	}
	if utf8.Valid(body) {
		l.raw(`},"body":`)
		l.text(body)
	} else {
		l.raw(`},"body_base64":`)
		l.base64(body)
	}
	l.raw("}\n")
	l.flush(0)
	return l.err
}

// line is a line that goes out in pieces: a payload may be large, and its escapes larger.
type line struct {
	w   io.Writer
	buf []byte
	err error // of the first Write that failed
}

// piece is how many bytes are escaped together, a multiple of 3.
const piece = 24 << 10

// flush writes what there is, if it is more than some bytes.
func (l *line) flush(above int) {
	if l.err == nil && len(l.buf) > above {
		_, l.err = l.w.Write(l.buf)
		l.buf = l.buf[:0]
	}
}

func (l *line) raw(text string) {
	l.buf = append(l.buf, text...)
	l.flush(piece)
}

// text adds a string, cut between characters.
func (l *line) text(text []byte) {
	l.raw(`"`)
	for len(text) > 0 && l.err == nil {
		n := min(len(text), piece)
		for n < len(text) && n > piece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		quoted, err := json.Marshal(string(text[:n]))
		if err != nil {
			l.err = err
			return
		}
		l.raw(string(quoted[1 : len(quoted)-1]))
		text = text[n:]
	}
	l.raw(`"`)
}

func (l *line) base64(payload []byte) {
	l.raw(`"`)
	for part := range slices.Chunk(payload, piece) {
		l.buf = base64.StdEncoding.AppendEncode(l.buf, part)
		l.flush(piece)
	}
	l.raw(`"`)
}
