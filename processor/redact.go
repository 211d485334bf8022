package processor

import (
	"bytes"
	"encoding/json"
	"html"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	redacted = "[…]"
	// maxRedactText and maxRedactRecord bound, in bytes, what is compared for each failure. Of a longer text
	// only the beginning is used; with a larger record, none of the text is quoted.
	maxRedactText   = 8 << 10
	maxRedactRecord = 4 << 20
	// minRedactWord is from how many bytes on a word without a digit is data anywhere in the text. A shorter
	// word is data only if it is a whole value.
	minRedactWord = 4
)

// Redact removes the record's data from a text of a receiver or a server, which may quote the record. So the
// text may be in an error: in the log, in the cursor's row and in its audit. Each removed part becomes […].
//
// It compares words, in upper and lower case: those of the values in the payload, of the headers and of the
// key. The names of a JSON payload's fields stay. So do the words of ID and of the time of creation, which the log
// has anyway. It does not find data in another form (hashed, encoded, run together with other letters). The
// receiver's own times stay, unless the record has the very same one, and so do the numbers of lines and columns,
// and HTTP/1.1. Other numbers are data however short they are: three digits may be an age, or the code of a card.
// A text is cut after 8 KiB. If the record, with its headers, key and id, has more than 4 MiB, nothing of the text
// is left.
func (r Record) Redact(text string) string { return Redact([]Delivery{{Record: r}})(text) }

// Redact returns a function that removes the data of several records from a text, as Record.Redact does. A batch
// sink's receiver may quote any record of the call. If the records have more than 4 MiB together, nothing of a text is
// left.
func Redact(ds []Delivery) func(text string) string {
	return func(text string) string {
		size := 0
		for _, d := range ds {
			if size += d.size(); size > maxRedactRecord {
				return redacted
			}
		}
		s := newSearch(unescape(visible.Start(text, maxRedactText)))
		for _, d := range ds {
			s.record(d.Record)
		}
		return s.replace()
	}
}

// size is how many bytes of a record the text is compared with.
func (r Record) size() int {
	n := len(r.Payload) + len(r.Key) + len(r.ID)
	for _, value := range r.Headers {
		n += len(value)
	}
	return n
}

// facts match what a receiver reports about itself in digits: times of day, with their date, where in a text
// something is wrong, and the version of HTTP.
var facts = regexp.MustCompile(`(?i)` +
	`\b(?:\d{4}-\d\d-\d\d[t ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:z|[+-]\d\d(?::?\d\d)?)?\b` +
	`|\b(?:mon|tue|wed|thu|fri|sat|sun), \d\d (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) \d{4} \d\d:\d\d:\d\d (?:gmt|utc|[+-]\d{4})\b` +
	`|\b(?:lines?|columns?|col|char|character|offset)[ :=#]{1,2}\d{1,6}\b` +
	`|\b[a-z_]\w*\.[a-z]{1,4}:\d{1,6}(?::\d{1,6})?\b` +
	`|\bhttp/\d(?:\.[\dx])?\b`)

// redactError returns an error with its text redacted.
func (r Record) redactError(err error) error { return outcome.Reworded(err, r.Redact(err.Error())) }

var unicodeEscapes = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// unescape undoes the escapes of JSON and HTML for letters.
func unescape(text string) string {
	return html.UnescapeString(unicodeEscapes.ReplaceAllStringFunc(text, func(escape string) string {
		n, _ := strconv.ParseUint(escape[2:], 16, 32)
		return string(rune(n))
	}))
}

// search finds which words of a text are data.
type search struct {
	text    string
	wanted  map[string]bool // the words of the text, in lower case
	lengths []int           // of them, in bytes
	facts   map[string]bool // times and the like in the text that are not the record's, in lower case
	data    map[string]bool // words that are data anywhere in the text
	beside  map[string]bool // words that are data in one chunk with such a word
}

func newSearch(text string) *search {
	s := &search{text: text, wanted: map[string]bool{}, data: map[string]bool{}, beside: map[string]bool{}, facts: map[string]bool{}}
	for _, fact := range facts.FindAllString(strings.ToLower(text), -1) {
		s.facts[fact] = true
	}
	for word := range words(strings.ToLower(text)) {
		s.wanted[word] = true
		if !slices.Contains(s.lengths, len(word)) {
			s.lengths = append(s.lengths, len(word))
		}
	}
	return s
}

// record marks the data of a record. The words of its id are data if another record has them.
func (s *search) record(r Record) {
	own := &search{wanted: s.wanted, lengths: s.lengths, facts: s.facts, data: map[string]bool{}, beside: map[string]bool{}}
	eachValue(r.Payload, func(value string) {
		if !r.createdAt(value) {
			own.value(value)
		}
	})
	for _, value := range r.Headers {
		own.value(value)
	}
	own.value(r.Key)
	own.keep(r.ID)
	maps.Copy(s.data, own.data)
	maps.Copy(s.beside, own.beside)
}

// createdAt reports whether a value is the time of creation, as PostgreSQL writes it in JSON.
func (r Record) createdAt(value string) bool {
	if len(value) > len(time.RFC3339Nano) {
		return false
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, value); err == nil {
			return at.Equal(r.CreatedAt)
		}
	}
	return false
}

// value marks the parts of a value that the text contains: its words, and the beginnings of the longer ones,
// since a receiver may cut off what it quotes. The letters of an identifier, as in "customer-77", are an
// ordinary word elsewhere.
func (s *search) value(value string) {
	value = strings.ToLower(strings.TrimSpace(value))
	for fact := range s.facts {
		if strings.Contains(value, fact) {
			delete(s.facts, fact)
		}
	}
	for chunk := range strings.FieldsFuncSeq(value, func(r rune) bool { return !inChunk(r) }) {
		identifier := hasDigit(chunk)
		for word := range words(chunk) {
			long := len(word) >= minRedactWord && (!identifier || hasDigit(word))
			s.mark(word, long || word == value || hasDigit(word))
			for _, n := range s.lengths {
				if n >= minRedactWord && n < len(word) {
					s.mark(word[:n], long)
				}
			}
		}
	}
}

func (s *search) mark(word string, anywhere bool) {
	switch {
	case !s.wanted[word]:
	case anywhere:
		s.data[word] = true
	default:
		s.beside[word] = true
	}
}

// keep takes words off the data.
func (s *search) keep(value string) {
	for word := range words(strings.ToLower(value)) {
		delete(s.data, word)
		delete(s.beside, word)
	}
}

func hasDigit(text string) bool { return strings.ContainsFunc(text, unicode.IsDigit) }

var (
	// chunks match words together with characters that may be within an identifier or an address.
	chunks = regexp.MustCompile(`[\pL\pN\pM@._+/%\\-]+`)
	// several match neighbors, which are shown as one.
	several = regexp.MustCompile(`\[…\]([^\pL\pN]{0,3}\[…\])+`)
)

// inChunk reports whether a character may be in a chunk.
func inChunk(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || strings.ContainsRune(`@._+/%\-`, r)
}

func (s *search) replace() string {
	if len(s.data) == 0 {
		return s.text
	}
	var b strings.Builder
	end := 0
	for _, at := range facts.FindAllStringIndex(s.text, -1) {
		if s.facts[strings.ToLower(s.text[at[0]:at[1]])] {
			b.WriteString(s.without(s.text[end:at[0]]) + s.text[at[0]:at[1]])
			end = at[1]
		}
	}
	return several.ReplaceAllString(b.String()+s.without(s.text[end:]), redacted)
}

// without returns a part of the text without the data in it.
func (s *search) without(part string) string { return chunks.ReplaceAllStringFunc(part, s.chunk) }

// chunk replaces the data in a chunk.
func (s *search) chunk(text string) string {
	data := false
	for word := range words(strings.ToLower(text)) {
		data = data || s.data[word]
	}
	if !data {
		return text
	}
	var b strings.Builder
	end := 0
	eachWord(text, func(from, to int) bool {
		if word := strings.ToLower(text[from:to]); s.data[word] || s.beside[word] {
			b.WriteString(text[end:from])
			b.WriteString(redacted)
			end = to
		}
		return true
	})
	return b.String() + text[end:]
}

// words returns the runs of letters and digits in a text.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		eachWord(text, func(from, to int) bool { return yield(text[from:to]) })
	}
}

// eachWord yields where words begin and end. The letter of an escape, such as the n of a line break written as
// \n, belongs to no word.
func eachWord(text string, yield func(from, to int) bool) {
	start := -1
	for i, r := range text {
		escape := i > 0 && text[i-1] == '\\' && strings.ContainsRune("bfnrt", r)
		switch inside := (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !escape; {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			if !yield(start, i) {
				return
			}
			start = -1
		}
	}
	if start >= 0 {
		yield(start, len(text))
	}
}

// eachValue calls take with the contents of a payload: of JSON, the strings and numbers, and the names that
// look like data; of anything else, the whole.
func eachValue(payload []byte, take func(string)) {
	if !json.Valid(payload) {
		take(string(payload))
		return
	}
	for len(payload) > 0 {
		n := literal(payload)
		text, rest := string(payload[:n]), payload[n:]
		if text[0] != '"' {
			take(constants.Replace(text))
		} else if _ = json.Unmarshal(payload[:n], &text); !isName(text) || !named(rest) {
			take(text)
		}
		payload = rest
	}
}

// constants removes the constants of JSON, which are not data.
var constants = strings.NewReplacer("true", "", "false", "", "null", "")

// named reports whether the string before rest is the name of a field.
func named(rest []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")) }

// literal is how many bytes the string at the beginning of valid JSON has. If there is none there, it is how
// many bytes come before the next string: numbers, and characters that are not data.
func literal(payload []byte) int {
	if payload[0] != '"' {
		if n := bytes.IndexByte(payload, '"'); n > 0 {
			return n
		}
		return len(payload)
	}
	for n := 1; ; n++ {
		switch payload[n] {
		case '\\':
			n++
		case '"':
			return n + 1
		}
	}
}

// isName distinguishes the name of a field from data that is used as one.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && r != '_' && r != '-' && r != '.'
	})
}
