package daemon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// A typing error beside a secret: the line is shown, and the parser counts its lines and
// characters otherwise than an editor does.
func TestParse_AFaultShowsNoPartOfASecretHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const (
		head = "# ours\ndatabase: postgres://u:CANARYpassword@h/db\nprocesses:\n  p:\n    source: {table: public.t}\n    start: beginning\n"
		line = head + "    sink: {webhook: {url: 'https://h/x', bearer: %, bogus: 1}}\n"
		tree = head + "    sink:\n      webhook:\n        url: https://h/x\n        bogus: 5s\n        secret: whsec_CANARYCANARYCANARY\n    limit: 1/s\n"
	)
	of := func(value string) string { return strings.Replace(line, "%", value, 1) }
	for name, text := range map[string]string{
		"on the next line":            tree,
		"a quote over two lines":      of("\"first\n      CANARYsecond\""),
		"single quotes over lines":    of("'first\n      CANARYsecond'"),
		"plain over two lines":        of("first\n      CANARYsecond"),
		"a quote with a blank line":   of("\"first\n\n      CANARYsecond\""),
		"escaped":                     of(`"\u0041\u0042\x43\U00000044CANARYCANARY"`),
		"with quotes in it":           of(`"a\"CANARY\"CANARY"`),
		"single quotes in it":         of(`'a''CANARY''CANARY'`),
		"of two bytes and of four":    of("\"é😀é😀 CANARYCANARY\""),
		"a comment behind":            of("CANARYCANARY # CANARYold\n      "),
		"a block":                     head + "    sink:\n      exec:\n        command: [a]\n        env:\n          A: |\n            first\n            CANARYx\n        bogus: 1\n",
		"an anchor and what it holds": of("&a \"CANARYCANARY\", bearer: *a"),
	} {
		for ends, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			t.Run(name+", "+ends, func(t *testing.T) {
				t.Parallel()
				_, err := daemon.Parse("f.yaml", []byte(strings.ReplaceAll(text, "\n", end)), environment(nil), kinds)
				require.Error(t, err)
				require.NotContains(t, err.Error(), "CANARY")
				require.NotContains(t, err.Error(), "ARY\"")
			})
		}
	}
}
