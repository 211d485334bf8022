package webhook

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// secrets takes secrets out of what a receiver says: some echo the request,
// and its answer goes to logs and to the cursor's row.
type secrets struct{ replacer *strings.Replacer }

// minSecret keeps short values, as in "?v=1", from being taken out everywhere.
const minSecret = 4

// maxExcerpt and maxErrorText bound what is quoted, in bytes.
const (
	maxExcerpt   = 200
	maxErrorText = 500
)

func newSecrets(c Config, u *url.URL) secrets {
	known := strings.Fields(c.Secret)
	for _, value := range c.Headers {
		known = append(known, value)
		known = append(known, strings.Fields(value)...) // "Bearer x" may be echoed as x
	}
	for _, values := range u.Query() {
		known = append(known, values...)
	}
	known = append(known, u.RawQuery)
	if u.User != nil {
		name := u.User.Username()
		password, _ := u.User.Password()
		known = append(known, name, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	// Of two that begin alike the longer one is to be taken out.
	slices.SortFunc(known, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range known {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, "[secret]")
		}
	}
	return secrets{strings.NewReplacer(pairs...)}
}

// clean makes a line of at most limit bytes, of printable characters, without
// secrets.
func (s secrets) clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return ' '
	}, s.replacer.Replace(text))
	return cut(strings.Join(strings.Fields(text), " "), limit)
}

// cut ends a text at a character's border.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
