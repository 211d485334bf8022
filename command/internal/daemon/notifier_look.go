package daemon

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

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
