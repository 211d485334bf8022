package visible_test

import (
	"bytes"
	"encoding/json"
	osexec "os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// hostile are texts with more hidden characters than others have.
func hostile() *rapid.Generator[string] {
	return rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x00\x1b\n\r\t\x07\x7f\u0085\u009b\u061c\u202e\u2066\u200f\u2028'\"\\$`"))))
}

func TestShell_AWordStaysOneWord(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"sms", "a b", "$(touch x)", "`id`", "a'b", "; rm -rf .", "-x", "", "*", "a\\b", "a\"b"} {
		out, err := osexec.Command("sh", "-c", "printf %s "+visible.Shell(word)).Output()
		require.NoError(t, err, word)
		require.Equal(t, word, string(out))
	}
	require.Equal(t, `'a\u000arm'`, visible.Shell("a\nrm"), "a line break would end the command")
}

func TestText_EscapesWhatMovesATerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u001b[2J\u000d\u009b\u202eb é`, visible.Text("a\x1b[2J\r\u009b\u202eb é"))
	require.Equal(t, "two\n\tlines", visible.Text("two\n\tlines"))
	require.Equal(t, "two\n    lines", visible.Indented("two\nlines"))
	require.Equal(t, "two lines", visible.Line("two\n\tlines\x1b"))
}

// Escaped JSON is the same JSON, and has no hidden character.
func TestJSON_SaysTheSameWithoutHiddenCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(hostile().Draw(t, "text"), "\uFFFD")
		var b bytes.Buffer
		require.NoError(t, json.NewEncoder(visible.JSON(&b)).Encode(map[string]string{text: text}))
		for _, r := range strings.TrimSuffix(b.String(), "\n") {
			require.False(t, visible.Hidden(r), "%q", b.String())
		}
		var back map[string]string
		require.NoError(t, json.Unmarshal(b.Bytes(), &back))
		require.Equal(t, map[string]string{text: text}, back)
	})
}

// nextHidden looks at no more than four first bytes.
func TestJSON_FindsEveryHiddenCharacter(t *testing.T) {
	t.Parallel()
	for r := rune(0x20); r <= unicode.MaxRune; r++ {
		if visible.Hidden(r) {
			require.NotContains(t, string(visible.EscapeJSON([]byte(`"`+string(r)+`"`))), string(r), "%U", r)
		}
	}
}

func TestSQL_SpellsANameInOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, `GRANT SELECT ON U&"a\+00000A\\b""\+00202E" TO "c"`, visible.SQL("GRANT SELECT ON \"a\n\\b\"\"\u202e\" TO \"c\""))
	require.Equal(t, `GRANT SELECT ON "a\b" TO "c"`, visible.SQL(`GRANT SELECT ON "a\b" TO "c"`))
	require.Equal(t, `SELECT setval(U&'"a\+00000A''"', 5), 'b"';`+"\n"+`ALTER TABLE U&"it's\+00000D" x`,
		visible.SQL("SELECT setval('\"a\n''\"', 5), 'b\"';\nALTER TABLE \"it's\r\" x"), "a literal, and line breaks between commands")
}
