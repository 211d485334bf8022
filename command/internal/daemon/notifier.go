package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/metrics"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
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
		n.sendAll(ctx, f)
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
	return f, n.rows.noteGone(ctx, n.presenceChanges(f.seen, f.before))
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

// presenceChanges returns the alarms whose cause has gone, or has come back, since the table was told.
func (n *notifier) presenceChanges(seen map[alarmKey]sight, before map[alarmKey]told) map[alarmKey]bool {
	all := map[alarmKey]bool{}
	for key, t := range before {
		if s, known := seen[alarmKey{process: key.process, event: key.event}]; known && t.turns(s) {
			all[key] = s.present
		}
	}
	return all
}
