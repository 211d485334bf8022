package cursor

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// Unplaced is the position of a cursor that was paused before its first run, and whose start is not known yet.
// No source reads on from it. The first worker that runs the process calls Place.
const Unplaced Position = "unplaced"

// placeSQL moves the cursor and notes it. It does neither if the cursor has a place.
var placeSQL = `/* cursor.place */
WITH placed AS (
	UPDATE {schema}.cursor
	SET position = $2, histories = coalesce($5::jsonb, histories)
	WHERE process_name = $1 AND position = $3
	RETURNING process_name, ` + tables.Took(`position = $2 AND ($5::jsonb IS NULL OR histories = $5::jsonb)`, `position`) + ` AS position
), event AS (
	INSERT INTO {schema}.cursor_event (process_name, actor, action, from_position, to_position)
	SELECT process_name, $4, 'place', $3, position FROM placed
)
SELECT EXISTS (SELECT 1 FROM placed)`

// Place gives a cursor that is Unplaced its start, and reports whether it did. It leaves a cursor that has a
// place as it is.
func (s *Store) Place(ctx context.Context, process string, at Position) (placed bool, err error) {
	return s.place(ctx, process, at, tables.Null)
}

// PlaceAnew is Place for a source whose ids have started again since the previous cursor was forgotten, or may
// have: see SeekAnew.
func (s *Store) PlaceAnew(ctx context.Context, process string, at Position) (placed bool, err error) {
	anew, err := Histories("[]").Begin("")
	if err != nil {
		return false, s.db.Explain("place", process, err)
	}
	return s.place(ctx, process, at, string(anew))
}

func (s *Store) place(ctx context.Context, process string, at Position, histories string) (placed bool, err error) {
	results, err := s.db.Once(ctx, tables.CommitTimeout, tables.Begin,
		s.db.Statement(placeSQL, process, string(at), string(Unplaced), s.config.Worker, histories))
	if err == nil {
		placed = string(results[0].Rows[0][0]) == "t"
	}
	if err != nil {
		return false, s.db.Explain("place", process, err)
	}
	return placed, nil
}
