package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// message makes the message about the claimed alarms, and what the table has after it. An alarm that the target does
// not want to know of is noted alone.
func (n *notifier) message(t *toldTarget, got []alarmKey, due map[alarmKey]dueAlarm, now time.Time) (notify.Message, map[alarmKey]told) {
	m := notify.Message{At: now, Worker: n.rows.worker, Console: n.notify.Console}
	noted := map[alarmKey]told{}
	for _, key := range got {
		d := due[key]
		after := d.before.after(d.status, d.sight, now)
		noted[key] = after
		if !t.Target().Takes(key.process, key.event, d.status) {
			continue
		}
		a := d.sight.alarm
		a.Status, a.Since, a.ID = d.status, after.since, alarmID(key, d.before)
		if d.status != notify.Recovered {
			a.Next, a.Runbook = nextCommand(a), n.notify.runbook(a.Event)
		}
		m.Alarms = append(m.Alarms, a)
	}
	notify.Sort(m.Alarms)
	ids := make([]string, len(m.Alarms))
	for i, a := range m.Alarms {
		ids[i] = a.ID
	}
	m.ID = "alarm_" + digestOf(ids...)
	return m, noted
}

// alarmID is the same whenever this message about this alarm is sent.
func alarmID(key alarmKey, before told) string {
	return digestOf(key.process, string(key.event), key.target, fmt.Sprint(before.messages), before.at.UTC().Format(time.RFC3339Nano))
}

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// nextCommand is what a person runs next.
func nextCommand(a notify.Alarm) string {
	if a.Event == notify.DeadLetters {
		return "ordered-dispatcher dead-letter list " + visible.Shell(a.Process)
	}
	return "ordered-dispatcher status " + visible.Shell(a.Process)
}
