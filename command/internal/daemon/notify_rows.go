package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// alarmRows is the table of what targets were told.
type alarmRows struct {
	config Config
	pool   *pgxpool.Pool
	worker string
}

const alarmsSQL = `/* daemon.alarms */
SELECT
	process_name,
	event,
	target,
	told,
	mark,
	since,
	messages,
	flaps,
	told_at,
	gone_since
FROM {schema}.cursor_alarm
WHERE process_name = ANY ($1::text[])
ORDER BY process_name, event, target
LIMIT 100000`

// read returns what the targets were told about processes.
func (r alarmRows) read(ctx context.Context, processes []string) (map[alarmKey]told, error) {
	all := map[alarmKey]told{}
	err := ask(ctx, r.pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, r.config.sql(alarmsSQL), binary, processes)
		if err != nil {
			return err
		}
		var key alarmKey
		var t told
		var since, at, gone *time.Time // NULL where there was no message yet
		_, err = pgx.ForEachRow(rows, []any{&key.process, &key.event, &key.target, &t.status, &t.mark, &since, &t.messages, &t.flaps, &at, &gone}, func() error {
			t.since, t.at, t.gone = orZero(since), orZero(at), orZero(gone)
			all[key] = t
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read who was told of which alarm: %w", err)
	}
	return all, nil
}

const claimAlarmsSQL = `/* daemon.claim_alarms */
INSERT INTO {schema}.cursor_alarm AS a (process_name, event, target, messages, claimed_by, claimed_until)
SELECT w.process_name, w.event, $4, w.messages, $5, clock_timestamp() + $6::bigint * interval '1 microsecond'
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS w (process_name, event, messages)
ORDER BY w.process_name, w.event
ON CONFLICT (process_name, event, target) DO UPDATE
SET claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
WHERE a.messages = excluded.messages AND a.claimed_until < clock_timestamp()
RETURNING process_name, event`

// claim makes this worker the only one that may tell a target of alarms, for a while. It returns the keys that it got:
// another worker has the others, or has told of them since they were read. Rows are locked in the order of their keys,
// so two workers never wait for each other in a circle.
func (r alarmRows) claim(ctx context.Context, target string, want map[alarmKey]told, hold time.Duration) ([]alarmKey, error) {
	var processes, events []string
	var messages []int64
	for key, t := range want {
		processes, events, messages = append(processes, key.process), append(events, string(key.event)), append(messages, t.messages)
	}
	var got []alarmKey
	err := ask(ctx, r.pool, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, r.config.sql(claimAlarmsSQL), binary, processes, events, messages, target, r.worker, hold.Microseconds())
		if err != nil {
			return err
		}
		key := alarmKey{target: target}
		_, err = pgx.ForEachRow(rows, []any{&key.process, &key.event}, func() error {
			got = append(got, key)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim the alarms of target %s: %w", target, err)
	}
	return got, nil
}

const noteAlarmsSQL = `/* daemon.note_alarms */
UPDATE {schema}.cursor_alarm AS a
SET
	told = w.told, mark = w.mark, since = w.since, messages = w.messages, flaps = w.flaps, told_at = clock_timestamp(), told_by = $8,
	gone_since = NULL, claimed_by = '', claimed_until = '-infinity'
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bigint[]) AS w (process_name, event, told, mark, since, messages, flaps)
WHERE a.process_name = w.process_name AND a.event = w.event AND a.target = $9 AND a.messages = w.messages - 1`

// note notes that a target was told of alarms, which ends the claim. It returns how many rows it has changed. The same
// note a second time changes none.
func (r alarmRows) note(ctx context.Context, target string, now map[alarmKey]told) (int, error) {
	var processes, events, statuses, marks []string
	var since []time.Time
	var messages, flaps []int64
	for _, key := range sortedKeys(now) {
		t := now[key]
		processes, events = append(processes, key.process), append(events, string(key.event))
		statuses, marks, since = append(statuses, string(t.status)), append(marks, t.mark), append(since, t.since)
		messages, flaps = append(messages, t.messages), append(flaps, int64(t.flaps))
	}
	var changed int
	err := ask(ctx, r.pool, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, r.config.sql(noteAlarmsSQL), binary, processes, events, statuses, marks, since, messages, flaps, r.worker, target)
		changed = int(tag.RowsAffected())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("note that target %s was told: %w", target, err)
	}
	return changed, nil
}

const releaseAlarmsSQL = `/* daemon.release_alarms */
UPDATE {schema}.cursor_alarm
SET claimed_by = '', claimed_until = '-infinity'
WHERE target = $1 AND claimed_by = $2`

// release lets other workers tell the target, because this one could not.
func (r alarmRows) release(ctx context.Context, target string) error {
	err := ask(ctx, r.pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, r.config.sql(releaseAlarmsSQL), binary, target, r.worker)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the alarms of target %s: %w", target, err)
	}
	return nil
}

const goneAlarmsSQL = `/* daemon.gone_alarms */
UPDATE {schema}.cursor_alarm AS a
SET gone_since = CASE WHEN w.present THEN NULL ELSE clock_timestamp() END
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS w (process_name, event, target, present)
WHERE a.process_name = w.process_name AND a.event = w.event AND a.target = w.target
	AND a.told = 'raised' AND w.present = (a.gone_since IS NOT NULL)`

// noteGone notes that causes have gone, or have come back. A cause that is gone already keeps its time.
func (r alarmRows) noteGone(ctx context.Context, present map[alarmKey]bool) error {
	if len(present) == 0 {
		return nil
	}
	var processes, events, targets []string
	var is []bool
	for _, key := range sortedKeys(present) {
		processes, events, targets, is = append(processes, key.process), append(events, string(key.event)), append(targets, key.target), append(is, present[key])
	}
	err := ask(ctx, r.pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, r.config.sql(goneAlarmsSQL), binary, processes, events, targets, is)
		return err
	})
	if err != nil {
		return fmt.Errorf("note which alarms have gone: %w", err)
	}
	return nil
}

// sortedKeys returns the keys in one order, in which every worker locks their rows.
func sortedKeys[V any](of map[alarmKey]V) []alarmKey {
	keys := make([]alarmKey, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b alarmKey) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.event, b.event), cmp.Compare(a.target, b.target))
	})
	return keys
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
