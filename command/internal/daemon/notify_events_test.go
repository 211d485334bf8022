package daemon_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestNotify_OfDeadLettersUntilNoneIsOpen(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	n := workers(t, alarming(t, o, stdoutProcess), 1)[0]
	created(t, pool)
	letters(t, pool, 3)
	n.Round(t.Context())
	require.Equal(t, []string{"a dead_letters raised"}, o.got())
	require.EqualValues(t, 3, o.alarm(0).OpenDeadLetters)
	require.Equal(t, "ordered-dispatcher dead-letter list a", o.alarm(0).Next)
	exec(t, pool, "UPDATE od.dead_letter SET resolution = 'discarded', resolved_at = now()")
	n.Round(t.Context())
	earlier(t, pool, "1 minute")
	n.Round(t.Context())
	require.Equal(t, []string{"a dead_letters raised", "a dead_letters recovered"}, o.got())
}

func TestNotify_OfALagAboveTheObjective(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	config := alarming(t, o, stdoutProcess+"  b: {source: {table: public.bookings}, sink: {stdout: {}}, objective: 1h}\n"+
		"  c: {source: {table: public.bookings, order: id}, sink: {stdout: {}}}\n")
	config.Notify.Objective = 30 * time.Second
	n := workers(t, config, 1)[0]
	s := created(t, pool)
	for _, process := range []string{"b", "c"} {
		_, err := s.Create(t.Context(), process, "")
		require.NoError(t, err)
	}
	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '1 second')")
	n.Round(t.Context())
	require.Empty(t, o.got())
	exec(t, pool, "INSERT INTO public.bookings (created_at) VALUES (clock_timestamp() - interval '5 minutes')")
	n.Round(t.Context())
	require.Equal(t, []string{"a lag raised", "c lag raised"}, o.got(), "in one message; b has an objective of its own")
	require.Len(t, o.ids, 1)
	alarm := o.alarm(0)
	require.InDelta(t, 300, alarm.LagSeconds, 60)
	require.InDelta(t, 30, alarm.ObjectiveSeconds, 0)
	require.EqualValues(t, 2, alarm.WaitingRecords)

	exec(t, pool, "UPDATE od.cursor SET state = 'halted' WHERE process_name = 'a'")
	exec(t, pool, "DELETE FROM public.bookings")
	n.Round(t.Context())
	earlier(t, pool, "1 minute")
	n.Round(t.Context())
	require.Equal(t, []string{"a lag raised", "c lag raised", "a halt raised", "c lag recovered"}, o.got(), "a halted process has not caught up")
}

// The receiver's words and the record are in the row, and in no message.
func TestNotify_AMessageHasNoDataOfARecord(t *testing.T) {
	t.Parallel()
	pool := database(t)
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprint(r.Header) + string(body)
	}))
	t.Cleanup(server.Close)
	config := configure(t, pgtest.URL(t), stdoutProcess)
	out := filepath.Join(t.TempDir(), "out")
	config.Notify.Targets = []notify.Target{
		{Name: "w", Webhook: &notify.Webhook{URL: server.URL}}, {Name: "s", Slack: &notify.Slack{URL: server.URL}},
		{Name: "e", Exec: &notify.Exec{Command: []string{"sh", "-c", `{ env; cat; } >"$0"`, out}}},
	}
	created(t, pool)
	haltAt(t, pool, "CANARY")
	workers(t, config, 1)[0].Round(t.Context())
	child, err := os.ReadFile(out)
	require.NoError(t, err)
	for _, text := range []string{<-got, <-got, string(child)} {
		require.Contains(t, text, "permanent")
		require.NotContains(t, text, "CANARY")
	}
}

func TestNotify_ATargetGetsWhatItIsToGet(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	config := alarming(t, o, stdoutProcess+"  b: {source: {table: public.bookings}, sink: {stdout: {}}}\n")
	config.Notify.Targets[0].Events, config.Notify.Targets[0].Processes = []string{"halt"}, []string{"a"}
	n := workers(t, config, 1)[0]
	_, err := created(t, pool).Create(t.Context(), "b", "")
	require.NoError(t, err)
	letters(t, pool, 1)
	haltAt(t, pool, "1") // both
	n.Round(t.Context())
	require.Equal(t, []string{"a halt raised"}, o.got())
	goOn(t, pool)
	n.Round(t.Context())
	earlier(t, pool, "1 minute")
	n.Round(t.Context())
	haltAt(t, pool, "1")
	n.Round(t.Context())
	require.Equal(t, []string{"a halt raised", "a halt raised"}, o.got(), "the recovery in between is noted, and not told")
}

// A drain from cron may end before the first look.
func TestNotify_ADrainTellsOfItsHalt(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	exec(t, pool, "CREATE TABLE public.effects (n int)")
	insert(t, pool, 1)
	config := alarming(t, o, poisoned)
	for range 2 {
		require.ErrorContains(t, drain(t, config), "is halted")
	}
	require.Equal(t, []string{"a halt raised"}, o.got())
}

// Before the upgrade of the tables, or without a right to them, records are delivered as before.
func TestNotify_WithoutItsTableRecordsAreDelivered(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	exec(t, pool, "DROP TABLE od.cursor_alarm")
	insert(t, pool, 3)
	log := &buffer{}
	config := daemon.RunConfig{Config: alarming(t, o, stdoutProcess), Logger: daemon.NewLogger(log, slog.LevelInfo)}
	require.NoError(t, drainTo(t, config))
	require.Contains(t, log.String(), "ordered-dispatcher migrate up")
	require.Equal(t, 3, count(t, pool, "SELECT sequence::int FROM od.cursor"))
}

func TestNotify_NeedsEachRightThatGrantsPrints(t *testing.T) {
	t.Parallel()
	pool, o := confined(t), newOnCall(t)
	config := alarming(t, o, "  a: {source: {table: app.plain}, sink: {stdout: {}}}\n")
	role, as := granted(t, pool, config)
	created(t, pool)
	told := func() int {
		before := o.tried.Load()
		exec(t, pool, "DELETE FROM od.cursor_alarm")
		n := workers(t, as, 1)[0]
		haltAt(t, pool, "1")
		n.Round(t.Context())
		goOn(t, pool)
		n.Round(t.Context())
		earlier(t, pool, "1 minute")
		n.Round(t.Context())
		return int(o.tried.Load() - before)
	}
	require.Equal(t, 2, told())
	require.Equal(t, 0, count(t, pool, "SELECT count(*) FROM od.cursor_alarm WHERE told <> 'recovered' OR messages <> 2"))
	s := newStore(t, pool)
	for _, need := range operator.New(s).Needs(operator.DutyNotify) {
		columns := need.Columns
		if len(columns) == 0 {
			columns = []string{""}
		}
		for _, column := range columns {
			on := fmt.Sprintf(`%s ON %s`, need.Right, need.Name)
			if column != "" {
				on = fmt.Sprintf(`%s (%s) ON %s`, need.Right, column, need.Name)
			}
			exec(t, pool, fmt.Sprintf(`REVOKE %s FROM "%s"`, on, role))
			whole := told() == 2 && count(t, pool, "SELECT count(*) FROM od.cursor_alarm WHERE told = 'recovered' AND messages = 2") == 1
			require.False(t, whole, on)
			exec(t, pool, fmt.Sprintf(`GRANT %s TO "%s"`, on, role))
		}
	}
}

const notifying = `
notify:
  objective: 30s
  console: https://console.example
  targets:
    chat: {slack: {url: "https://hooks.example/hunter2"}, events: [halt]}
    on_call: {webhook: {url: "https://on-call.example/x", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}}
    mail: {smtp: {host: smtp.example, from: a@example.com, to: b@example.com}}
    page: {exec: {command: [page, --now]}, processes: [a]}
processes: {a: {source: {table: t}, sink: {stdout: {}}, start: end, objective: 5m}}
`

func TestParse_Notify(t *testing.T) {
	t.Parallel()
	config, err := parse(notifying)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, config.Notify.Objective)
	require.Equal(t, 5*time.Minute, config.Processes[0].Objective)
	require.Equal(t, []notify.Target{
		{Name: "chat", Slack: &notify.Slack{URL: "https://hooks.example/hunter2"}, Events: []string{"halt"}},
		{Name: "on_call", Webhook: &notify.Webhook{URL: "https://on-call.example/x", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
		{Name: "mail", SMTP: &notify.SMTP{Host: "smtp.example", From: "a@example.com", To: []string{"b@example.com"}}},
		{Name: "page", Exec: &notify.Exec{Command: []string{"page", "--now"}}, Processes: []string{"a"}},
	}, config.Notify.Targets)

	for wrong, want := range map[string]string{
		"objective: 30s":              "objective: 30|a duration",
		"processes: [a]":              "processes: [b]|there is no process \"b\"",
		"events: [halt]":              "events: [halts]|\"halts\" is not one",
		"{smtp: {host: smtp.example,": "{smtp: {|host",
		"https://hooks.example":       "hooks.example|url must begin with https",
		"https://console.example":     "https://me:hunter2@console.example|without a login",
		"    chat:":                   "    -chat:|must begin with a letter",
		"on_call: {webhook:":          "on_call: {pager:|the key \"pager\" is not known",
	} {
		change, text, _ := strings.Cut(want, "|")
		require.Contains(t, notifying, wrong)
		_, err := parse(strings.Replace(notifying, wrong, change, 1))
		require.ErrorContains(t, err, text)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestDoctor_TriesTheTargets(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	config := alarming(t, o, "  a: {source: {table: public.bookings}, sink: {stdout: {}}}\n  b: {source: {table: public.plain, order: id}, sink: {stdout: {}}}\n")
	exec(t, pool, "CREATE TABLE public.plain (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
	config.Notify.Objective = time.Minute
	require.NoError(t, drain(t, config))
	config.Notify.Targets = append(config.Notify.Targets, notify.Target{Name: "gone", Slack: &notify.Slack{URL: "http://127.0.0.1:1/hunter2"}})
	findings := doctor(t, config)
	requireFinding(t, findings, daemon.Finding{"", daemon.Warn, "a target of notify cannot be reached: reach gone (Slack webhook at http://127.0.0.1:1): dial tcp", "notify-test gone -c FILE"})
	requireFinding(t, findings, daemon.Finding{"b", daemon.Warn, "no one is told of its lag", "source.columns.created_at"})
	require.NotContains(t, fmt.Sprint(findings), "on_call")
	require.Equal(t, 1, strings.Count(fmt.Sprint(findings), "no one is told of its lag"))
	require.Zero(t, o.tried.Load())
}

func TestTestTargets_SendsAMarkedMessageAndPrintsEach(t *testing.T) {
	t.Parallel()
	o := newOnCall(t)
	config, err := parse(notifying)
	require.NoError(t, err)
	config.Notify.Targets = []notify.Target{
		{Name: "on_call", Webhook: &notify.Webhook{URL: o.URL, Secret: alarmSecret}}, {Name: "gone", Slack: &notify.Slack{URL: "http://127.0.0.1:1/hunter2"}},
	}
	var out bytes.Buffer
	require.ErrorIs(t, daemon.TestTargets(t.Context(), &out, daemon.TargetsConfig{Config: config, Worker: "w"}), daemon.ErrUntold)
	require.Regexp(t, `^on_call \(webhook to http://127\.0\.0\.1:\d+\): sent\ngone \(Slack webhook at http://127\.0\.0\.1:1\): not sent: tell gone .*connection refused\n$`, out.String())
	require.Len(t, o.ids, 1)
	require.Contains(t, o.ids[0], "alarm_test_")
	require.NoError(t, daemon.TestTargets(t.Context(), io.Discard, daemon.TargetsConfig{Config: config, Targets: []string{"on_call"}}))
	err = daemon.TestTargets(t.Context(), io.Discard, daemon.TargetsConfig{Config: config, Targets: []string{"oncall"}})
	require.EqualError(t, err, `there is no target "oncall": there are on_call, gone`)
	require.Equal(t, daemon.ExitUsage, daemon.ExitCode(err))
}
