package fold_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
)

func TestFold_BreaksNeitherACommandNorSQL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"words", "one two three four five", "one two three\n  four five"},
		{"what fits is left alone", "one  two", "one  two"},
		{"a command", "run `ordered-dispatcher retry a`, or not", "run\n  `ordered-dispatcher retry a`,\n  or not"},
		{"a lone backquote", "one ` two three four", "one ` two three\n  four"},
		{"two commands in one word", "one `two three`/`four five` six", "one\n  `two three`/`four five`\n  six"},
		{"a command after a lone backquote", "one `two next: `retry a b`, or `skip a b`", "one\n  `two next: `retry a b`,\n  or `skip a b`"},
		{"a backquote in a word", "it`s one, or `skip a b c`", "it`s one, or\n  `skip a b c`"},
		{"a quoted value", "do --expect='a b c d e f g' instead", "do\n  --expect='a b c d e f g'\n  instead"},
		{"SQL after a colon", "next: SELECT pg_terminate_backend(1); then look", "next:\n  SELECT pg_terminate_backend(1);\n  then look"},
		{"SQL up to the end of its sentence", "see: SELECT pid FROM a WHERE b = '. If'. If it does", "see:\n  SELECT pid FROM a WHERE b = '. If'.\n  If it does"},
		{"a verb in prose", "run the UPDATE that doctor prints", "run the UPDATE\n  that doctor\n  prints"},
		{"an indent stays", "  one two three four", "  one two three\n  four"},
		{"each line", "one two three four\nfive six seven eight", "one two three\n  four\nfive six seven\n  eight"},
	} {
		require.Equal(t, c.want, fold.Text(c.text, 16, "  "), c.name)
	}
	require.Equal(t, "one two", fold.Text("one two", 0, ""), "no width")
}

// What is folded is the same text, and no line with a space in it is too wide for a reason other than what must stay whole.
func TestFold_LosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching("[a-zé….,;:]{1,12}|`[a-z]([a-z ]{0,18}[a-z])?`")).Draw(t, "words")
		width := rapid.IntRange(10, 60).Draw(t, "width")
		text := strings.Join(words, " ")
		folded := fold.Text(text, width, "  ")
		require.Equal(t, strings.Fields(text), strings.Fields(folded))
		for _, line := range strings.Split(folded, "\n") {
			if !strings.Contains(line, "`") && strings.Contains(strings.TrimSpace(line), " ") {
				require.LessOrEqual(t, ansi.StringWidth(line), width, "%q", line)
			}
		}
		for _, w := range words {
			require.Contains(t, folded, w, "broken")
		}
	})
}

func TestAfter_IndentsToTheFirstWord(t *testing.T) {
	t.Parallel()
	require.Equal(t, "12:00  failed  one two\n               three", fold.After("12:00  failed  ", "one two three", 24))
	require.Equal(t, "head one two", fold.After("head ", "one two", 0), "no width")
	require.Equal(t, "a long head one\n            two", fold.After("a long head ", "one two", 5))
}
