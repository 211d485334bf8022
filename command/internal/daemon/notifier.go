package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sethvargo/go-retry"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// notifyInterval is the pause between two looks. It is notifyFactor times as long as the look took if that is longer,
	// up to maxNotifyInterval.
	notifyInterval    = 5 * time.Second
	notifyFactor      = 20
	maxNotifyInterval = time.Minute
	// claimHold is how long a worker may be the only one that tells a target. It is longer than a message takes, with the
	// note after it.
	claimHold = notify.MaxTimeout + noteTimeout + 20*time.Second
	// noteTimeout is how long a worker tries to note that a message went out.
	noteTimeout = 20 * time.Second
	// The wait after a target could not be told doubles from the first to the last of these.
	firstTellDelay = 5 * time.Second
	maxTellDelay   = 5 * time.Minute
)

// notifier looks at the processes of the file again and again, in any state, and tells the targets. Every worker has
// one, since a worker that delivered may be gone, and no one holds a halted process. Of several workers, the one that
// claims an alarm in the table tells it, and the table keeps what was told.
type notifier struct {
	config  Config
	notify  Notify
	pool    *pgxpool.Pool
	store   *cursor.Store
	rows    alarmRows
	log     *slog.Logger
	every   time.Duration
	metrics *metrics.Metrics // nil: the daemon does not listen
	targets []*toldTarget
	sources map[string]*table.Source // of processes with an objective
	logged  problems
}

// toldTarget is a target with its back-off.
type toldTarget struct {
	*notify.Sender
	delay time.Duration // of the last failure; 0 after a success
	until time.Time     // it is not tried before that
	fault problems      // the last one, by ""; targets are told at the same time, so each has its own
}

func newNotifier(c RunConfig, pool *pgxpool.Pool, store *cursor.Store) (*notifier, error) {
	n := &notifier{
		config: c.Config, notify: c.Config.Notify.filled(), pool: pool, store: store, log: c.Logger,
		rows:  alarmRows{c.Config, pool, store.Worker()},
		every: cmp.Or(c.lookInterval, notifyInterval), sources: map[string]*table.Source{}, logged: problems{},
	}
	for _, t := range c.Config.Notify.Targets {
		sender, err := notify.New(t)
		if err != nil {
			return nil, err
		}
		n.targets = append(n.targets, &toldTarget{Sender: sender, fault: problems{}})
	}
	for _, p := range c.Config.Processes {
		if c.Config.objective(p) == 0 {
			continue
		}
		source, err := c.Config.keys(p, pool)
		if err != nil {
			return nil, err
		}
		n.sources[p.Name] = source
	}
	return n, nil
}

// keepNotifying tells the targets until the crew ends. A drain may end before a look, so it ends with one more.
func (c *crew) keepNotifying() error {
	<-c.announced
	n := c.notifier
	if c.refused || len(n.targets) == 0 {
		<-c.ctx.Done()
		return nil
	}
	for c.ctx.Err() == nil {
		began := time.Now()
		n.round(c.ctx)
		pause(c.ctx, min(max(n.every, notifyFactor*time.Since(began)), max(n.every, maxNotifyInterval)))
	}
	if c.draining {
		n.round(context.WithoutCancel(c.ctx))
	}
	return nil
}

// round looks once, and tells what is due. Failures are logged, and the next round tries again.
func (n *notifier) round(ctx context.Context) {
	f, err := n.find(ctx)
	if ctx.Err() != nil {
		return
	}
	if n.logged.changes("", err) && err != nil {
		n.log.Warn("alarms cannot be told, since the processes, or the table cursor_alarm, cannot be read: deliveries go on", "err", err, "fix", alarmFix(err))
	}
	if err == nil {
		n.tellAll(ctx, f)
	}
}

// finds are what a look found, and what was told before.
type finds struct {
	now    time.Time // of the database
	seen   map[alarmKey]sight
	before map[alarmKey]told
}

// find looks at the processes, and at what was told of them. It notes which causes have gone.
func (n *notifier) find(ctx context.Context) (f finds, err error) {
	if f.now, f.seen, err = n.look(ctx); err != nil {
		return f, err
	}
	if f.before, err = n.rows.read(ctx, n.config.Names()); err != nil {
		return f, err
	}
	return f, n.rows.turn(ctx, n.turned(f.seen, f.before))
}

// tellAll tells each target what is due.
func (n *notifier) tellAll(ctx context.Context, f finds) {
	var telling sync.WaitGroup
	for _, t := range n.targets {
		due := n.due(t, f)
		if len(due) > 0 && !time.Now().Before(t.until) {
			telling.Go(func() { n.tell(ctx, t, due, f.now) })
		}
	}
	telling.Wait()
}

// alarmFix is the next step if the table of alarms cannot be used.
func alarmFix(err error) string {
	var pgErr *pgconn.PgError
	switch {
	case denied(err):
		return grantsFix
	case errors.As(err, &pgErr) && pgErr.Code == "42P01":
		return "run, as the owner, `ordered-dispatcher migrate up -c FILE`"
	default:
		return "see the error, or run doctor"
	}
}

// dueAlarm is an alarm of which a target is to be told.
type dueAlarm struct {
	status notify.Status
	sight  sight
	before told
}

// due returns what a target is to be told, by key.
func (n *notifier) due(t *toldTarget, f finds) map[alarmKey]dueAlarm {
	all := map[alarmKey]dueAlarm{}
	for key, s := range f.seen {
		if !t.Target().Concerns(key.process, key.event) {
			continue
		}
		key.target = t.Target().Name
		if status := f.before[key].due(s, f.now, n.notify); status != "" {
			all[key] = dueAlarm{status, s, f.before[key]}
		}
	}
	return all
}

// turned returns the alarms whose cause has gone, or has come back, since the table was told.
func (n *notifier) turned(seen map[alarmKey]sight, before map[alarmKey]told) map[alarmKey]bool {
	all := map[alarmKey]bool{}
	for key, t := range before {
		if s, known := seen[alarmKey{process: key.process, event: key.event}]; known && t.turns(s) {
			all[key] = s.present
		}
	}
	return all
}

// tell tells a target what no other worker tells it. The message counts as sent once the table has it. If this worker
// dies in between, another one sends it again. A message that is under way goes out, even if the crew ends.
func (n *notifier) tell(ctx context.Context, t *toldTarget, due map[alarmKey]dueAlarm, now time.Time) {
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

// look returns the database's time, and what there is to see of each event of each process. An event of which nothing
// is known is missing: then no alarm is raised, and no recovery is told.
func (n *notifier) look(ctx context.Context) (now time.Time, seen map[alarmKey]sight, err error) {
	var rows []cursor.Row
	err = answer.Within(ctx, lookTimeout, func(ctx context.Context) (err error) {
		if rows, err = n.store.List(ctx); err != nil {
			return err
		}
		return ask(ctx, n.pool, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, "/* daemon.now */ SELECT clock_timestamp()", binary).Scan(&now)
		})
	})
	if err != nil {
		return now, nil, err
	}
	letters := n.letters(ctx)
	seen = map[alarmKey]sight{}
	of := map[string]cursor.Row{}
	for _, row := range rows {
		of[row.Process] = row
	}
	for _, p := range n.config.Processes {
		row, exists := of[p.Name]
		if !exists {
			continue
		}
		seen[alarmKey{process: p.Name, event: notify.Halt}] = haltSight(row)
		if open, known := letters[p.Name]; known {
			seen[alarmKey{process: p.Name, event: notify.DeadLetters}] = lettersSight(row, open, now)
		}
		if lag, known := n.lag(ctx, row); known {
			seen[alarmKey{process: p.Name, event: notify.Lag}] = lagSight(row, lag, n.config.objective(p), now)
		}
	}
	return now, seen, nil
}

// letters counts the open dead letters. It returns nil if they cannot be counted.
func (n *notifier) letters(ctx context.Context) map[string]int64 {
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	counts, err := operator.New(n.store).CountDeadLetters(asking, n.config.Names())
	if ctx.Err() != nil {
		return nil
	}
	if n.logged.changes("letters", err) && err != nil {
		n.log.Warn("the open dead letters cannot be counted: no one is told of them", "err", err)
	}
	if err != nil {
		return nil
	}
	return counts
}

// lag returns how far a process is behind. It is not known without an objective, nor without the times of the records.
// Nor is it asked of a halted process: its halt is the alarm.
func (n *notifier) lag(ctx context.Context, row cursor.Row) (table.Lag, bool) {
	source := n.sources[row.Process]
	if source == nil || row.State == cursor.Halted {
		return table.Lag{}, false
	}
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lag, err := source.Lag(asking, row.Position)
	if err == nil && !lag.Aged {
		err = errors.New("the source has no created_at column, so the age of a record is not known")
	}
	if ctx.Err() != nil {
		return table.Lag{}, false
	}
	if n.logged.changes("lag "+row.Process, err) && err != nil {
		n.log.Warn("the lag cannot be compared with the objective: no one is told of it", "process", row.Process, "err", err)
	}
	return lag, err == nil
}

func alarmOf(row cursor.Row, event notify.Event, since time.Time) notify.Alarm {
	a := notify.Alarm{Process: row.Process, Event: event, Since: since, State: string(row.State)}
	if f := row.Failure; f != nil {
		a.Class, a.Attempts = string(cmp.Or(f.Class, cursor.ClassTransient)), f.Attempts
	}
	return a
}

// haltSight sees another halt if another record, or another cause, halts the process.
func haltSight(row cursor.Row) sight {
	s := sight{present: row.State == cursor.Halted, alarm: alarmOf(row, notify.Halt, row.UpdatedAt)}
	if f := row.Failure; s.present && f != nil {
		s.mark = digestOf(string(f.Position), f.RecordID, string(f.Class))
		if !f.Last.IsZero() {
			s.alarm.Since = f.Last
		}
	}
	return s
}

func lettersSight(row cursor.Row, open int64, now time.Time) sight {
	s := sight{present: open > 0, alarm: alarmOf(row, notify.DeadLetters, now)}
	s.alarm.OpenDeadLetters = open
	return s
}

func lagSight(row cursor.Row, lag table.Lag, objective time.Duration, now time.Time) sight {
	s := sight{present: lag.Age > objective, alarm: alarmOf(row, notify.Lag, now.Add(objective-lag.Age))}
	s.alarm.LagSeconds, s.alarm.ObjectiveSeconds, s.alarm.WaitingRecords = lag.Age.Seconds(), objective.Seconds(), lag.Records
	return s
}
