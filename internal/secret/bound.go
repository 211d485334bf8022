package secret

import "unicode/utf8"

const (
	// maxText is how much of a text is shown, in bytes.
	maxText = 32 << 10
	// margin is how much more is searched, so that of a secret that begins in what is
	// shown at least minPart letters are found.
	margin = 2 << 10
	// slack is longer than an escape that is escaped itself. Where a text was cut, its
	// last escape may be a part of one, so a needle need not go on there.
	slack = 256
)

// cutAt is where a text ends that is cut to so many bytes: at the border of a character.
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

// rest is what a text has in place of what is not shown.
func rest(text string, shown int) string {
	if shown == len(text) {
		return ""
	}
	return "…"
}
