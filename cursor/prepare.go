package cursor

import (
	"context"
	"errors"
	"time"
)

// Unplaced is the position of a cursor that was paused before its first run, and whose start is not known yet.
// No source reads on from it. The first worker that runs the process calls Place.
const Unplaced Position = "unplaced"

// prepareSQL is createSQL for an operator.
var prepareSQL = `/* cursor.prepare */
WITH past AS (
	SELECT action
	FROM {schema}.cursor_event
	WHERE process_name = $1 AND action IN ('create', 'rename', 'renamed', 'forget')
	ORDER BY id DESC
	LIMIT 1
), created AS (
	INSERT INTO {schema}.cursor (process_name, position, state, system_identifier, timeline, database_oid, epoch, sequence, histories)
	SELECT $1, $2, $3, ` + placeOfSQL + `, ` + bornSQL("$7", "$8", "$9", "$10") + `
	WHERE NOT EXISTS (SELECT 1 FROM past WHERE action <> 'forget')
	ON CONFLICT (process_name) DO NOTHING
	RETURNING process_name, position, state
), event AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, to_position, detail)
	SELECT process_name, $4, 'create', $5, position, jsonb_build_object('by', $6::text, 'to_state', state) FROM created
	RETURNING 1
)
SELECT
	EXISTS (SELECT 1 FROM created),
	EXISTS (SELECT 1 FROM {schema}.cursor WHERE process_name = $1),
	CASE WHEN (SELECT count(*) FROM event) = (SELECT count(*) FROM created) THEN 1 ELSE ('` + noEvent + `, rows: ' || (SELECT count(*) FROM event))::int END`

// Prepare makes the cursor of a process before its first run, in the given state and at the given position. The
// position is Unplaced if the start is not known yet. by names the command that asks for it. Prepare returns
// ErrExists if there is a cursor, and ErrDeleted or ErrRenamed if the name was used before.
func (s *Store) Prepare(ctx context.Context, process string, at Position, state State, by string, d Decision) (Change, error) {
	return s.prepare(ctx, process, at, state, by, d, false)
}

// PrepareAnew is Prepare for a source whose ids have started again since the cursor was forgotten, or may have:
// see SeekAnew.
func (s *Store) PrepareAnew(ctx context.Context, process string, at Position, state State, by string, d Decision) (Change, error) {
	return s.prepare(ctx, process, at, state, by, d, true)
}

func (s *Store) prepare(ctx context.Context, process string, at Position, state State, by string, d Decision, anew bool) (Change, error) {
	d = d.withDefaults()
	a := action{name: by, apply: func(row Row) (Row, error) { return row, nil }}
	if err := d.validate(a); err != nil {
		return Change{}, s.explain(by, process, err)
	}
	if d.DryRun {
		if _, err := s.Look(ctx, process); !errors.Is(err, ErrUnknown) {
			return Change{}, s.refusal(a, process, errors.Join(err, exists(process)))
		}
		row := Row{Process: process, Position: at, State: state}
		return Change{Before: Row{Process: process}, After: row, Changed: true}, s.Past(ctx, process)
	}
	var created, stood bool
	numbers, err := born(time.Now(), anew)
	if err != nil {
		return Change{}, s.explain("make", process, err)
	}
	results, err := s.once(ctx, commitTimeout, begin,
		statement{sql: s.sql(prepareSQL), args: append([]string{process, string(at), string(state), d.Actor, d.Reason, by}, numbers...)})
	if err == nil {
		created, stood = string(results[0].Rows[0][0]) == "t", string(results[0].Rows[0][1]) == "t"
	}
	switch {
	case err != nil:
		return Change{}, s.explain("make", process, unaudited(err))
	case !created && !stood:
		if err := s.Past(ctx, process); err != nil {
			return Change{}, err
		}
		return Change{}, s.explain("make", process, exists(process)) // made and given up at this moment
	case !created:
		return Change{}, s.explain("make", process, exists(process))
	}
	row, err := s.Look(ctx, process)
	return Change{Before: Row{Process: process}, After: row, Changed: true}, err
}

// placeSQL moves the cursor and notes it. It does neither if the cursor has a place.
var placeSQL = `/* cursor.place */
WITH placed AS (
	UPDATE {schema}.cursor
	SET position = $2, histories = coalesce($5::jsonb, histories)
	WHERE process_name = $1 AND position = $3
	RETURNING process_name, ` + took(`position = $2 AND ($5::jsonb IS NULL OR histories = $5::jsonb)`, `position`) + ` AS position
), event AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, from_position, to_position)
	SELECT process_name, $4, 'place', $3, position FROM placed
)
SELECT EXISTS (SELECT 1 FROM placed)`

// Place gives a cursor that is Unplaced its start, and reports whether it did. It leaves a cursor that has a
// place as it is.
func (s *Store) Place(ctx context.Context, process string, at Position) (placed bool, err error) {
	return s.place(ctx, process, at, null)
}

// PlaceAnew is Place for a source whose ids have started again since the previous cursor was forgotten, or may
// have: see SeekAnew.
func (s *Store) PlaceAnew(ctx context.Context, process string, at Position) (placed bool, err error) {
	anew, err := Histories("[]").begin("")
	if err != nil {
		return false, s.explain("place", process, err)
	}
	return s.place(ctx, process, at, string(anew))
}

func (s *Store) place(ctx context.Context, process string, at Position, histories string) (placed bool, err error) {
	results, err := s.once(ctx, commitTimeout, begin,
		statement{sql: s.sql(placeSQL), args: []string{process, string(at), string(Unplaced), s.config.Worker, histories}})
	if err == nil {
		placed = string(results[0].Rows[0][0]) == "t"
	}
	if err != nil {
		return false, s.explain("place", process, err)
	}
	return placed, nil
}
