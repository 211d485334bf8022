package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// forms are the ways in which a receiver may say something.
var forms = map[string]func(string) string{
	"as it is": func(s string) string { return s },
	"JSON": func(s string) string {
		text, _ := json.Marshal(s)
		return string(text[1 : len(text)-1])
	},
	"JSON in ASCII":      func(s string) string { return each(s, `\u%04x`) },
	"JSON with slashes":  func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "/", `\/`) },
	"a Go string":        func(s string) string { text := fmt.Sprintf("%+q", s); return text[1 : len(text)-1] },
	"bytes of C":         func(s string) string { return each(s, `\x%02x`) },
	"octal":              func(s string) string { return each(s, `\%03o`) },
	"in braces":          func(s string) string { return each(s, `\u{%x}`) },
	"query":              url.QueryEscape,
	"path":               url.PathEscape,
	"all of it in a URL": func(s string) string { return each(s, "%%%02X") },
	"lower-case URL":     func(s string) string { return each(s, "%%%02x") },
	"HTML":               html.EscapeString,
	"HTML by number":     func(s string) string { return each(s, "&#%d;") },
	"HTML in hex":        func(s string) string { return each(s, "&#x%X;") },
	"base64":             func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"raw base64":         func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 of URLs":     func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 behind 1":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s + "tail")) },
	"base64 behind 2":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("xy" + s + "tai")) },
	"base64 behind 30": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("z", 30) + s + "t"))
	},
	"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper-case hex": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
}

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func TestReplace_FindsASecretInEveryFormAndInTwoAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[A-Z][A-Za-z0-9"'<>&/\\+=%?# _.~-]{8,38}[0-9]`).Draw(t, "secret")
		before, behind := rapid.StringMatching(`[ a-z:="{]{0,8}`).Draw(t, "before"), rapid.StringMatching(`[ ,}]{1,8}[a-z]{0,4}`).Draw(t, "behind")
		s := secret.New(value, "another-secret")
		for name, form := range forms {
			got := s.Replace(before + " " + form(value) + behind)
			require.True(t, strings.HasPrefix(got, before+" "+secret.Mask), "%s of %q: %q", name, value, got)
			outer := rapid.SampledFrom(outerForms).Draw(t, "outer")
			require.Contains(t, s.Replace(forms[outer](form(value))), secret.Mask, "%s of %s of %q", outer, name, value)
		}
	})
}

// outerForms are put around another form. HTML by number is two steps of an escape.
var outerForms = []string{"as it is", "JSON", "JSON in ASCII", "JSON with slashes", "a Go string", "query", "path", "all of it in a URL", "HTML"}

func TestReplace_LeavesTheRestAsItIs(t *testing.T) {
	t.Parallel()
	s := secret.New("swordfish-9", "abc", "")
	for _, text := range []string{"", "no such customer: 17", "abc", "swordfish?", "100%", `\`, "&", "&amp", "%zz %4", `\u12`, "a+b", "c3dvcmRz", "\xff\xfe"} {
		require.Equal(t, text, s.Replace(text))
	}
	require.Equal(t, "[secret] and [secret]!", s.Replace("swordfish-9 and swordfish%2D9!"))
	require.Equal(t, "key: [secret]", s.Replace("key: swordfis"), "cut off")
	require.Equal(t, "x", secret.Set{}.Replace("x"))
}

func TestReplace_FindsBase64AndHexOverLines(t *testing.T) {
	t.Parallel()
	value := "a-secret-of-more-than-thirty-two-bytes"
	s := secret.New(value)
	encoded := forms["base64 behind 30"](value)
	require.NotContains(t, s.Replace(encoded[:60]+"\r\n"+encoded[60:]), encoded[64:80])
	var pairs []string
	for i := range len(value) {
		pairs = append(pairs, fmt.Sprintf("%02X", value[i]))
	}
	require.Equal(t, secret.Mask, s.Replace(strings.Join(pairs, ":")))
}

// What a receiver says is not to keep the worker busy.
func TestReplace_IsBoundedWhateverAReceiverSays(t *testing.T) {
	t.Parallel()
	s := secret.New("%25%25%25%25%25%25%25%25x", `\\\\\\\\\\x`, "&amp;&amp;&amp;x", "aaaaaaaaaaaaaaaaaaaaaaaab")
	for _, piece := range []string{"%25", "%2525", `\\u005c`, "&amp;", "&amp;amp;", "a", "+", "%", "&#37;"} {
		text := strings.Repeat(piece, 8<<10/len(piece))
		require.Greater(t, len(s.Replace(text)), len(text)-100, "it is searched to its end: %s", piece)
	}
	require.Equal(t, "[…]", s.Replace(strings.Repeat(`\`, 8<<10)), "the ways to read it are without number")
}

func TestError_KeepsTheChainAndHidesTheSecret(t *testing.T) {
	t.Parallel()
	s := secret.New("swordfish-9")
	err := s.Error(fmt.Errorf("read swordfish%%2d9: %w", io.EOF))
	require.EqualError(t, err, "read [secret]: EOF")
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, s.Error(nil))
	plain := errors.New("x")
	require.Equal(t, plain, s.Error(plain))
}
