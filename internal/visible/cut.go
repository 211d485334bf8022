package visible

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"
)

// The parts of a long text that Cut keeps.
const (
	longest = 200 // a text of up to that many bytes is not cut
	head    = 80
	tail    = 40
)

// Cut shortens a name that others gave, such as an id or a position, for people and for logs. It keeps the beginning
// and the end of a long one, with its size and a part of its digest, by which it differs from others. Output for
// programs has the whole name.
func Cut(text string) string {
	if len(text) <= longest {
		return text
	}
	begin, end := head, len(text)-tail
	for !utf8.RuneStart(text[begin]) && begin > head-utf8.UTFMax {
		begin--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) && end < len(text)-tail+utf8.UTFMax {
		end++
	}
	digest := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s…%s (%d bytes, sha256 %s)", text[:begin], text[end:], len(text), hex.EncodeToString(digest[:6]))
}

// Start returns the beginning of a text, of at most limit bytes, with "…" after it if the text is longer.
func Start(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// Short is Cut as a part of a line: it returns Line of the result.
func Short(text string) string { return Line(Cut(text)) }
