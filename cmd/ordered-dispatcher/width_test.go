package main_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// pasted is a line that has to stay whole: a command, SQL, or a word without spaces.
var pasted = regexp.MustCompile("^ *(fix: )?(`|--|\\S+$|(ALTER|CREATE|DROP|GRANT|REVOKE|SELECT|UPDATE|DELETE) )")

// TestWidth_NoLineIsWiderThanEightyColumns: of any command, of its errors and of its help.
func TestWidth_NoLineIsWiderThanEightyColumns(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 30)
	receiver := newPicky(t, "3")
	long := "a_process_with_a_name_that_is_rather_long"
	both := `processes:
  ` + long + `: {source: {table: public.bookings}, sink: {webhook: {url: "` + receiver.URL + `"}}, start: beginning, poll: 20ms}
  aside: {source: {table: public.bookings}, sink: {webhook: {url: "` + receiver.URL + `"}}, start: beginning, poll: 20ms, on_poison: dead_letter}
`
	config := file(t, both+`  new: {source: {table: public.bookings}, sink: {webhook: {url: "`+receiver.URL+`"}}}`)
	two := file(t, both)
	code, _, _ := do(t, address, "run", "--drain", "-c", two)
	require.Equal(t, 3, code)
	execute(t, pool, `UPDATE public.cursor_event SET reason = repeat('a reason with many words ', 10) WHERE action = 'halt'`)
	for _, line := range []string{
		"status", "status " + long, "history " + long, "history aside", "doctor", "dead-letter list", "dead-letter list --all", "partitions", "check",
		"retry " + long + " --dry-run", "skip " + long + " --dry-run", "seek " + long + " --to-id 1 --dry-run --reason=x", "pause " + long + " --dry-run", "pause aside --reason=x",
		"pause aside", "resume aside", "resume " + long, "skip aside --reason=x", "dead-letter replay 1 --dry-run", "dead-letter replay 1 --reason=x --timeout=5s",
		"dead-letter discard --process=aside --all --dry-run", "dead-letter discard 1 --reason=x", "dead-letter discard 99 --reason=x", "restored --all --reason=x --dry-run",
		"process rename aside " + long, "process forget aside --reason=x --dry-run", "process compare aside new", "prune --dry-run", "migrate status", "migrate up", "migrate down",
		"status nobody", "pause nobody", "history nobody", "seek aside --reason=x", "erase public.bookings --key=x --reason=x --dry-run", "claims collect --dry-run",
		"run --drain --grace=0s", "frobnicate", "run --frobnicate", "",
	} {
		args := strings.Fields(line)
		if len(args) > 0 && args[0] != "frobnicate" {
			args = append(args, "-c", config)
		}
		cmd := exec.Command(binary, args...)
		cmd.Env = []string{"COLUMNS=80"}
		p := startCommand(t, address, "", cmd)
		p.wait()
		for printed := range strings.Lines(p.stdout.String() + p.stderr.String()) {
			printed = strings.TrimSuffix(printed, "\n")
			if !pasted.MatchString(printed) && !strings.HasPrefix(printed, "{") {
				require.LessOrEqual(t, utf8.RuneCountInString(printed), 80, "%s: %s", line, printed)
			}
		}
	}
}
