package secret

import "unicode/utf8"

const (
	// maxText is how many bytes of a text are shown.
	maxText = 32 << 10
	// margin is how many more bytes are searched. So of a secret that begins in the shown part, at least minPart
	// letters are found.
	margin = 2 << 10
	// slack is longer than an escape that is escaped itself. If a text was cut, its last escape may be a part of one,
	// so a needle need not go on there.
	slack = 256
)

// cutAt returns where to cut a text to that many bytes: at the border of a character.
func cutAt(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	end := limit
	for !utf8.RuneStart(text[end]) && end > limit-utf8.UTFMax {
		end--
	}
	return end
}

// rest returns the replacement for the part of a text that is not shown.
func rest(text string, shown int) string {
	if shown == len(text) {
		return ""
	}
	return "…"
}
