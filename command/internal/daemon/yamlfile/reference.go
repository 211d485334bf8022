package yamlfile

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/token"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// Environment looks up a variable, as os.LookupEnv does.
type Environment func(name string) (string, bool)

// A reference must survive the parser, to which braces and a colon have a meaning, above all within {…}. So its signs
// are replaced before parsing, one character by one private-use character, and read back afterwards. The columns stay
// the same.
const (
	markDollar  = '\uE000' // of ${
	markOpen    = '\uE001'
	markClose   = '\uE002'
	markEscape  = '\uE003' // of $${
	markLiteral = '\uE004' // the second $ of it
	markBrace   = '\uE005' // its opening brace
	markEnd     = '\uE006' // its closing brace
	markColon   = '\uE007'
	markComma   = '\uE008'
	markHash    = '\uE009'
)

func isMark(r rune) bool { return r >= markDollar && r <= markHash }

var referencePattern = regexp.MustCompile(`\$?\$\{[^{}\r\n]*\}`)

var markInside = strings.NewReplacer(":", string(markColon), ",", string(markComma), "#", string(markHash))

// markReferences replaces the signs of references.
func markReferences(source string) string {
	return referencePattern.ReplaceAllStringFunc(source, func(text string) string {
		if body, escaped := strings.CutPrefix(text, "$${"); escaped {
			return string([]rune{markEscape, markLiteral, markBrace}) + markInside.Replace(strings.TrimSuffix(body, "}")) + string(markEnd)
		}
		body := strings.TrimSuffix(strings.TrimPrefix(text, "${"), "}")
		return string([]rune{markDollar, markOpen}) + markInside.Replace(body) + string(markClose)
	})
}

var unmarkInside = strings.NewReplacer(string(markColon), ":", string(markComma), ",", string(markHash), "#")

var unmark = strings.NewReplacer(
	string(markDollar), "$", string(markOpen), "{", string(markClose), "}",
	string(markEscape), "$", string(markLiteral), "$", string(markBrace), "{", string(markEnd), "}",
	string(markColon), ":", string(markComma), ",", string(markHash), "#")

var unescape = strings.NewReplacer(
	string(markEscape), "", string(markLiteral), "$", string(markBrace), "{", string(markEnd), "}",
	string(markColon), ":", string(markComma), ",", string(markHash), "#")

// spelling returns a scalar as the file has it, for messages.
func spelling(value string) string { return unmark.Replace(value) }

var markedReference = regexp.MustCompile(string(markDollar) + string(markOpen) + `([^` + string(markClose) + `]*)` + string(markClose))

// onlyReferences reports whether a scalar contains only references, so that it is not a secret itself.
func onlyReferences(value string) bool {
	return value != "" && markedReference.ReplaceAllString(value, "") == ""
}

func hasReference(value string) bool { return strings.ContainsRune(value, markDollar) }

// resolve replaces the references in a scalar. It does not look for references in their values.
func (f *File) resolve(at *token.Token, path, value string) string {
	if f.tooLarge(at, path, len(value)) { // an alias repeats its text
		return ""
	}
	var b strings.Builder
	last := 0
	for _, m := range markedReference.FindAllStringSubmatchIndex(value, -1) {
		b.WriteString(unescape.Replace(value[last:m[0]]))
		reference := unmarkInside.Replace(value[m[2]:m[3]])
		text, err := f.lookUp(reference)
		if err != nil {
			f.fault(at, path, err.Error())
		}
		if f.tooLarge(at, path, len(text)) {
			return ""
		}
		f.resolved = append(f.resolved, resolved{path, reference, text})
		b.WriteString(text)
		last = m[1]
	}
	b.WriteString(unescape.Replace(value[last:]))
	return b.String()
}

func (f *File) tooLarge(at *token.Token, path string, more int) bool {
	if f.expanded += more; f.expanded <= maxExpanded {
		return false
	}
	f.once(at, path, fmt.Sprintf("the references and aliases of this file expand to more than %d bytes: name the right files, or shorten them", maxExpanded))
	return true
}

// resolved is the text that replaced a reference in the value at a path.
type resolved struct{ path, reference, text string }

// filePrefix begins a reference to a file.
const filePrefix = "file:"

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxExpanded bounds the size of the texts of a file, with those that replace its references. Short references can name
// a large file many times, and short aliases a large text.
const maxExpanded = 8 * bounded.MaxBytes

func (f *File) lookUp(reference string) (string, error) {
	if path, ok := strings.CutPrefix(reference, filePrefix); ok {
		if !slices.Contains(f.files, path) {
			f.files = append(f.files, path)
		}
		return f.read(path)
	}
	if !namePattern.MatchString(reference) {
		return "", fmt.Errorf("${%s} is not a reference: write ${NAME} or ${file:/path}, or $${%s} for the text itself", reference, reference)
	}
	value, ok := f.env(reference)
	switch {
	case !ok:
		return "", fmt.Errorf("the environment has no variable %s: set it, or write $${%s} for the text itself", reference, reference)
	case value == "":
		// More likely, a deployment lost the secret than wanted an empty one.
		return "", fmt.Errorf("the variable %s is set but empty: give it a value", reference)
	default:
		return value, nil
	}
}

// ReadSecret reads a file that a reference names. It removes the line break at its end, which editors and secret
// stores add. Its error names the file.
func ReadSecret(path string) (string, error) {
	text, err := bounded.Read(path)
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // this one does not name the file again
	}
	switch {
	case errors.Is(err, bounded.ErrTooLarge), errors.Is(err, bounded.ErrKind), errors.Is(err, bounded.ErrSilent):
		return "", fmt.Errorf("the file %s cannot be read (%w): name the right one", path, err)
	case err != nil:
		return "", fmt.Errorf("the file %s cannot be read (%w): create it, or let this user read it", path, err)
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return "", fmt.Errorf("the file %s is empty: write the value into it", path)
	}
	return value, nil
}
