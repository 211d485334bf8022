package webhook

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	masking "github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// secrets takes secrets out of a receiver's words. Some receivers echo the request, and their answer goes to logs and
// to the cursor's row.
type secrets struct{ set masking.Set }

// minToken is the length in bytes from which a part of a path is not an ordinary word.
const minToken = 16

// maxExcerpt and maxErrorText bound the quoted text, in bytes.
const (
	maxExcerpt   = 200
	maxErrorText = 500
)

func newSecrets(c Config, of ...*url.URL) secrets {
	known := append(strings.Fields(c.Secret), c.Bearer)
	known = append(known, basicSecrets(c.Basic)...)
	for _, value := range c.Headers {
		known = append(known, value)
		known = append(known, strings.Fields(value)...) // "Bearer x" may be echoed as x
	}
	for _, u := range of {
		if u == nil {
			continue
		}
		known = append(known, u.RawQuery)
		for _, values := range u.Query() {
			known = append(known, values...)
		}
		known = append(known, pathSecrets(u)...)
		known = append(known, basicSecrets(userOf(u))...)
	}
	for _, s := range known { // a text that the secret stands for is a secret, too
		if key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, signature.Prefix)); err == nil {
			known = append(known, string(key))
		}
	}
	return secrets{masking.New(known...)}
}

func basicSecrets(b Basic) []string {
	if (b == Basic{}) {
		return nil
	}
	return []string{b.User, b.Password, b.encoded()}
}

// word is a path that is the name of a thing, and no token. Processes have such names, so it occurs in messages.
var word = regexp.MustCompile(`^[a-z_]{1,15}$`)

// pathSecrets returns the parts of a path that may be a token: the whole path unless it is a word, and the parts that
// look like one. Ordinary words of the path stay, since they occur in any message.
func pathSecrets(u *url.URL) []string {
	var all []string
	for _, path := range []string{u.Path, u.EscapedPath()} {
		if whole := strings.Trim(path, "/"); !word.MatchString(whole) {
			all = append(all, whole)
		}
		for part := range strings.SplitSeq(path, "/") {
			if len(part) >= minToken || strings.ContainsFunc(part, unicode.IsDigit) {
				all = append(all, part)
			}
		}
	}
	return all
}

// clean makes a line of at most limit bytes, of printable characters, without secrets.
func (s secrets) clean(text string, limit int) string {
	return visible.Start(visible.Line(s.set.Line(text)), limit)
}
