package child

import (
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

const (
	// minFolded is the shortest secret that is looked for over the ends of lines. The end of one word and the beginning
	// of the next line often make a shorter one: "logged in" and "fo: the first" hold "info".
	minFolded = 8
	// minBegun is how much of a secret at the end of the last line is taken for its beginning, as in package secret.
	minBegun = 6
)

// Redactor takes secrets out of the words of a child.
type Redactor struct {
	secret.Set
	unbroken []string // the values without line breaks, and the lines of those that have several
}

// NewRedactor returns the redactor of all values except those that are too short to be a secret.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{Set: secret.New(values...)}
	for _, value := range values {
		r.unbroken = append(r.unbroken, secret.Lines(value)...)
		if value = strings.NewReplacer("\r", "", "\n", "").Replace(value); len(value) >= minFolded {
			r.unbroken = append(r.unbroken, value)
		}
	}
	return r
}

// Next returns lines without the secrets that go on over the end of a line. before are the lines that were logged just
// before them: where a secret begins there, the first line begins with a mask. The lines that have a part of one secret
// become one line. A part of a secret at the end of a line that was cut is still there.
//
// Three kinds of folded secret are not found, so their parts are logged, and are in an error. The first kind has another
// line between its parts, such as a line of another thread. What was hidden before that line came stays hidden. The
// second kind has more than white space before the part in each line, such as "| ". If the secret is folded as it is, an
// indent is enough. The third kind begins in a part of a long line that was not read.
func (r *Redactor) Next(before, lines []string) []string {
	all := r.masked(slices.Concat(before, lines))
	if len(before) == 0 {
		return strings.Split(all, "\n")
	}
	shown := r.masked(before) + "\n"
	if rest, ok := strings.CutPrefix(all, shown); ok {
		return strings.Split(rest, "\n")
	}
	// If a secret began before the lines and did not go on in them, a mask that was logged is none here: all has its
	// parts in the clear, and ends with the lines as they are by themselves.
	if alone := r.masked(lines); strings.HasSuffix(all, "\n"+alone) {
		return strings.Split(alone, "\n")
	}
	same := 0
	for same < len(all) && same < len(shown) && all[same] == shown[same] {
		same++
	}
	return strings.Split(secret.Mask+strings.TrimPrefix(all[same:], secret.Mask), "\n")
}

// masked joins lines and takes the secrets out.
func (r *Redactor) masked(lines []string) string {
	return r.Replace(r.unfold(strings.Join(lines, "\n")))
}

// unfold masks each value that has line breaks between its letters. Set finds base64 and hex with line breaks by itself.
func (r *Redactor) unfold(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		n := 0
		for _, value := range r.unbroken {
			n = max(n, folded(text[i:], value))
		}
		if n == 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(secret.Mask)
		i += n
	}
	return b.String()
}

// folded returns how long a value is that begins a text and has line breaks; 0 if none does. The end of the text may
// cut the value off. A line break may be in place of spaces, since word wrap drops them.
func folded(text, value string) int {
	found, breaks, dropped := 0, 0, 0
	for i := range len(text) {
		switch {
		case text[i] == '\n' && found > 0:
			breaks++
			if rest := strings.TrimLeft(value[found:], " "); rest != "" {
				dropped += len(value) - len(rest) - found
				found = len(value) - len(rest)
			}
			continue
		case text[i] == ' ' && dropped > 0: // it was not, and begins the next line
			dropped--
			continue
		case text[i] != value[found]:
			return 0
		}
		found, dropped = found+1, 0
		switch {
		case found < len(value):
		case breaks > 0:
			return i + 1
		default:
			return 0 // Set finds it
		}
	}
	if found >= minBegun && breaks > 0 {
		return len(text)
	}
	return 0
}
