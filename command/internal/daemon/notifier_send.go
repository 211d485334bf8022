package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
)

// sendAll tells each target what is due.
func (n *notifier) sendAll(ctx context.Context, f finds) {
	var telling sync.WaitGroup
	for _, t := range n.targets {
		due := n.due(t, f)
		if len(due) > 0 && !time.Now().Before(t.until) {
			telling.Go(func() { n.claimAndSend(ctx, t, due, f.now) })
		}
	}
	telling.Wait()
}

// claimAndSend claims alarms for a target, so that no other worker tells it of them, and sends the message. The message
// counts as sent once the table has it. If this worker dies in between, another one sends it again. A message that is
// under way goes out, even if the crew ends.
func (n *notifier) claimAndSend(ctx context.Context, t *toldTarget, due map[alarmKey]dueAlarm, now time.Time) {
	name := t.Target().Name
	want := map[alarmKey]told{}
	for key, d := range due {
		want[key] = d.before
	}
	got, err := n.rows.claim(ctx, name, want, claimHold)
	if err != nil {
		n.failed(t, nil, err)
		return
	}
	if len(got) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	message, noted := n.message(t, got, due, now)
	if len(message.Alarms) > 0 {
		err = t.Send(ctx, message)
	}
	if err != nil {
		n.failed(t, message.Alarms, errors.Join(err, n.rows.release(ctx, name)))
		return
	}
	n.note(ctx, t, noted)
	t.delay, t.until = 0, time.Time{}
	if len(message.Alarms) > 0 {
		n.count(name, metrics.Sent)
		t.fault.changes("", nil)
		n.log.Info("told a target", "target", t.Sender, "subject", message.Subject(), "alarms", len(message.Alarms))
	}
}

// note notes that a target was told. It tries for a while: without the note, another worker sends the message again.
func (n *notifier) note(ctx context.Context, t *toldTarget, now map[alarmKey]told) {
	backoff := retry.WithMaxDuration(noteTimeout-askTimeout, retry.WithCappedDuration(2*time.Second, retry.NewExponential(100*time.Millisecond)))
	changed := 0
	err := retry.Do(ctx, backoff, func(ctx context.Context) (err error) {
		changed, err = n.rows.note(ctx, t.Target().Name, now)
		if denied(err) {
			return err
		}
		return retry.RetryableError(err)
	})
	switch {
	case err != nil:
		n.log.Warn("a target was told, and that could not be noted: it may be told again", "target", t.Sender, "err", err)
	case changed < len(now):
		n.log.Warn("a target was told by another worker, too", "target", t.Sender, "alarms", len(now)-changed)
	}
}

// failed notes that a target could not be told. It is logged once for each cause, and the next attempt waits.
func (n *notifier) failed(t *toldTarget, alarms []notify.Alarm, err error) {
	t.delay = min(max(2*t.delay, firstTellDelay), maxTellDelay)
	wait := t.delay
	var later *notify.LaterError
	if errors.As(err, &later) {
		wait = max(wait, later.After)
	}
	t.until = time.Now().Add(wait)
	n.count(t.Target().Name, metrics.Failed)
	if t.fault.changes("", err) {
		n.log.Warn("a target could not be told, and is tried again: deliveries go on", "target", t.Sender, "alarms", len(alarms), "retry_in", wait, "err", err)
	}
}

// measure makes the notifier count its messages.
func (n *notifier) measure(m *metrics.Metrics) {
	n.metrics = m
	for _, t := range n.targets {
		m.Targets(t.Target().Name)
	}
}

func (n *notifier) count(target string, outcome metrics.Outcome) {
	if n.metrics != nil {
		n.metrics.Notified(target, outcome)
	}
}
