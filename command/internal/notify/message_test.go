package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
)

func TestText_OfEachEvent(t *testing.T) {
	t.Parallel()
	text := func(a notify.Alarm) string {
		a.Process, a.Since = "p", since
		return notify.Message{Alarms: []notify.Alarm{a}}.Text()
	}
	require.Equal(t, `p is behind (since 2026-11-28 10:32:05 UTC)
The oldest record that waits is 45s old, and the objective is 30s. Waiting: 3 records.
The next record fails: the receiver cannot be reached (class unreached, 4 attempts).
`, text(notify.Alarm{Event: notify.Lag, Status: notify.Raised, State: "running", LagSeconds: 45, ObjectiveSeconds: 30, WaitingRecords: 3, Class: "unreached", Attempts: 4}))
	require.Contains(t, text(notify.Alarm{Event: notify.Lag, Status: notify.Reminded, State: "paused"}), "paused by an operator")
	require.Equal(t, "p has caught up, after the alarm of 2026-11-28 10:32:05 UTC\nIt is running now.\n", text(notify.Alarm{Event: notify.Lag, Status: notify.Recovered, State: "running"}))
	require.Equal(t, `p has open dead letters (since 2026-11-28 10:32:05 UTC)
Open: 1 dead letter. They were not delivered.
`, text(notify.Alarm{Event: notify.DeadLetters, Status: notify.Raised, OpenDeadLetters: 1}))
}

// A receiver that is away may halt every process at once.
func TestMessage_OfManyAlarmsIsShort(t *testing.T) {
	t.Parallel()
	var m notify.Message
	for i := range 1000 {
		m.Alarms = append(m.Alarms, notify.Alarm{Process: fmt.Sprint("p", i), Event: notify.Halt, Status: notify.Raised, Since: since})
	}
	m.Alarms = append(m.Alarms, notify.Alarm{Process: "q", Event: notify.Lag, Status: notify.Recovered})
	require.Equal(t, "ordered-dispatcher: 1000 alarms, 1 recovered", m.Subject())
	require.Less(t, len(m.Text()), 8000)
	require.True(t, strings.HasSuffix(m.Text(), "\nand 981 more: ordered-dispatcher status shows them\n"))
}

func TestSort_PutsHaltsFirstAndRecoveriesLast(t *testing.T) {
	t.Parallel()
	alarms := []notify.Alarm{
		{Process: "a", Event: notify.Halt, Status: notify.Recovered}, {Process: "a", Event: notify.Lag, Status: notify.Raised},
		{Process: "b", Event: notify.Halt, Status: notify.Reminded}, {Process: "a", Event: notify.Halt, Status: notify.Raised},
	}
	notify.Sort(alarms)
	var order []string
	for _, a := range alarms {
		order = append(order, a.Process+" "+string(a.Event)+" "+string(a.Status))
	}
	require.Equal(t, []string{"a halt raised", "b halt reminded", "a lag raised", "a halt recovered"}, order)
}

func TestValidate_NamesEveryFault(t *testing.T) {
	t.Parallel()
	for want, target := range map[string]notify.Target{
		"it has no kind":                       {},
		"it has several kinds":                 {Slack: &notify.Slack{URL: "https://h/x"}, Exec: &notify.Exec{Command: []string{"x"}}},
		`events: "halts" is not one`:           {Slack: &notify.Slack{URL: "https://h/x"}, Events: []string{"halts"}},
		"no event that could be recovered":     {Slack: &notify.Slack{URL: "https://h/x"}, Events: []string{"recovery"}},
		"url must begin with https":            {Slack: &notify.Slack{URL: "hunter2"}},
		"url is empty":                         {Webhook: &notify.Webhook{}},
		"secret has a key of 7 bytes":          {Webhook: &notify.Webhook{URL: "https://h", Secret: "hunter2"}},
		"headers: Content-Type is set by":      {Webhook: &notify.Webhook{URL: "https://h", Headers: map[string]string{"content-type": "x"}}},
		`headers: "A" is not a header`:         {Webhook: &notify.Webhook{URL: "https://h", Headers: map[string]string{"A": "hunter2\r\nB: c"}}},
		"user and password belong together":    {SMTP: &notify.SMTP{Host: "h", From: "a@b", To: []string{"a@b"}, User: "u"}},
		"would send the password in the clear": {SMTP: &notify.SMTP{Host: "h", From: "a@b", To: []string{"a@b"}, User: "u", Password: "hunter2", Security: "none"}},
		`"x" is not an e-mail address`:         {SMTP: &notify.SMTP{Host: "h", From: "a@b", To: []string{"x"}}},
		"names that begin with ALARM_":         {Exec: &notify.Exec{Command: []string{"x"}, Env: map[string]string{"ALARM_ID": "hunter2"}}},
		"command names no program":             {Exec: &notify.Exec{Command: []string{""}}},
	} {
		err := target.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
