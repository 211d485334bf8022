package screen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// statuses are processes in several states.
func statuses() []daemon.Status {
	age := 3*time.Minute + 5*time.Second
	return []daemon.Status{
		{Row: cursor.Row{Process: "booking_sms", State: cursor.Halted, Position: "int:00000000000000004710", Sequence: 4710, Epoch: 3, Holder: "pod-1:4242:K7QX2M"},
			Lag: &daemon.Lag{Records: 12, Age: &age},
			Hold: &daemon.Hold{Kind: daemon.HoldHalted, Text: "halted at record 4711, which the receiver refuses for good, 1 attempt since 2026-11-20T12:00:01Z: " +
				"post to https://sms.example: answered 422 Unprocessable Entity", Next: "`ordered-dispatcher retry booking_sms`, or `ordered-dispatcher skip booking_sms --reason …`"}},
		{Row: cursor.Row{Process: "invoices_of_all_tenants_to_the_ledger@v2", State: cursor.Running, Position: "at.int:2026-11-20T12:00:00.000000Z/00000000000123456789", Sequence: 99,
			Holder: "a-pod-with-a-long-name-7f9c6d5b8-abcde:1:K7QX2M"}, Lag: &daemon.Lag{Records: table.MaxLagRecords}},
		{Row: cursor.Row{Process: "new"}, New: true, Problem: "no worker has run it yet: start `ordered-dispatcher run`"},
	}
}

func TestStatus_FitsIntoEightyColumns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, page(&b).Status(statuses(), map[string]float64{"invoices_of_all_tenants_to_the_ledger@v2": 1234}))
	require.Regexp(t, `^PROCESS +STATE +WAITING +OLDEST +RATE +WORKER +LAST-RECORD\n`, b.String())
	require.Regexp(t, `(?m)^booking_sms +halted +12 +3m5s +- +\S+ +4710$`, b.String())
	require.Contains(t, b.String(), "\n  halted at record 4711, which the receiver refuses for good, 1 attempt since\n    2026-11-20T12:00:01Z: post to https://sms.example: answered 422\n")
	require.Contains(t, b.String(), "\n    `ordered-dispatcher skip booking_sms --reason …`\n")
	require.Contains(t, b.String(), "1.2k/s")
	require.Regexp(t, `\n +123456789$|123456789\n`, b.String())
	require.NotContains(t, b.String(), "at.int:", "positions are for --wide")
	requireWidth(t, b.String(), 80)

	b.Reset()
	require.NoError(t, page(&b).Wide().Status(statuses(), nil))
	require.Regexp(t, `(?m)^booking_sms +halted +12 +3m5s +- +pod-1:4242:K7QX2M +4710 +4710 +3 +int:00000000000000004710$`, b.String())
	require.Contains(t, b.String(), "at.int:2026-11-20T12:00:00.000000Z/00000000000123456789\n")
}

// requireWidth: no line is wider, unless it is a command that must stay whole.
func requireWidth(t testing.TB, text string, width int) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "`") {
			require.LessOrEqual(t, ansi.StringWidth(line), width, line)
		}
	}
}

func TestLists_FitIntoEightyColumns(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long text ", 20)
	events := []operator.Event{{At: time.Unix(0, 0), Actor: "ann@" + strings.Repeat("host", 10), User: "postgres", Action: "dead_letter_replayed", Reason: long}, {Action: "pause", Reason: "short"}}
	letters := []cursor.DeadLetter{{ID: 1, Process: strings.Repeat("p", 40), RecordID: strings.Repeat("7", 36), Failure: cursor.Failure{Error: long, Class: "permanent"}}}
	findings := []daemon.Finding{{Process: "a", Severity: daemon.Refuse, Problem: long, Fix: "ALTER TABLE public.bookings ALTER COLUMN created_at SET DEFAULT clock_timestamp(), ALTER COLUMN created_at SET NOT NULL;\n" + long}}
	var b strings.Builder
	require.NoError(t, page(&b).History(events))
	require.NoError(t, page(&b).DeadLetters(letters))
	require.NoError(t, page(&b).Selection(letters, "would be delivered once more, in this order until one fails"))
	require.NoError(t, page(&b).Outcome(daemon.Outcome{Text: long, Problem: long}))
	requireWidth(t, b.String(), 80)
	b.Reset()
	require.NoError(t, page(&b).Findings(findings))
	require.Contains(t, b.String(), "\n    fix: "+strings.Split(findings[0].Fix, "\n")[0]+"\n", "SQL is pasted, so it is not folded")
	requireWidth(t, strings.ReplaceAll(b.String(), "ALTER TABLE public.bookings", "`"), 1000)
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, "ALTER") {
			require.LessOrEqual(t, len(line), 81, line)
		}
	}
}

func TestPage_ColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.False(t, page(&b).Colour, "no terminal")
	require.Equal(t, screen.DefaultWidth, page(&b).Width)
	require.Equal(t, 120, screen.NewPage(&b, env(map[string]string{"COLUMNS": "120"})).Width)
	require.Equal(t, screen.DefaultWidth, screen.NewPage(&b, env(map[string]string{"COLUMNS": "-3"})).Width)
	p := page(&b)
	p.Colour = true
	require.NoError(t, p.Status(statuses(), nil))
	require.Contains(t, b.String(), "\x1b[31mhalted\x1b[0m")
	b.Reset()
	require.NoError(t, page(&b).Status(statuses(), nil))
	require.NotContains(t, b.String(), "\x1b")
}
