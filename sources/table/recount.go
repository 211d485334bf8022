package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// recountSQL reports whether, since the horizon, the sequence was made, altered or started again, or the column of
// the ids was given another default. It also returns the last id of the sequence, NULL if that is not known.
const recountSQL = `/* source.recount */
SELECT
	EXISTS (
		SELECT
		FROM (
			SELECT c.xmin FROM pg_class c WHERE c.oid = %[1]d
			UNION ALL
			SELECT q.xmin FROM pg_sequence q WHERE q.seqrelid = %[1]d
			UNION ALL
			SELECT a.xmin FROM pg_attribute a WHERE a.attrelid = %[2]d AND a.attname = %[3]s
			UNION ALL
			SELECT d.xmin FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = %[2]d AND a.attname = %[3]s
		) AS t, ` + newestXID + `
		WHERE ` + writtenBy + ` >= $1::text::bigint
	),
	CASE WHEN has_sequence_privilege(%[1]d, 'SELECT') THEN pg_sequence_last_value(%[1]d) END`

func (l *layout) recountSQL(c Config, sequence uint32) string {
	parts, _ := parseName(c.Columns.ID)
	return fmt.Sprintf(recountSQL, sequence, l.oid, literal(parts[0]))
}

// errRecounted: ids of new rows may be below the ids of rows that were delivered.
var errRecounted = errors.New("the ids may have started again")

// recount returns the last id of a sequence, nil if that is not known. It returns errRecounted if the catalog shows
// that the ids may have started again since the horizon.
func (l *layout) recount(ctx context.Context, tx pgx.Tx, c Config, sequence uint32, horizon string) (last *int64, err error) {
	var anew bool
	if err := tx.QueryRow(ctx, l.recountSQL(c, sequence), pgx.QueryExecModeExec, horizon).Scan(&anew, &last); err != nil {
		return nil, err
	}
	if anew {
		return nil, errRecounted
	}
	return last, nil
}

// KeysMayRepeat reports whether records that are read from now on may have the dedup keys of other records, either up
// to a position or read before. That is so if the keys consist of ids alone, and one of two things is true. Either
// the catalog shows that the ids have started again since the horizon (see cursor.Store.Horizon), or the sequence is
// before the position. It also reports true if that is not known. It does not notice a sequence that setval set back
// and that has passed the position again.
func (s *Source) KeysMayRepeat(ctx context.Context, at cursor.Position, horizon string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(ctx)
	if err != nil || !l.keyedByID {
		return false, err
	}
	if _, err := l.kind.parse(at); horizon == "" || at != "" && err != nil { // of another order
		return true, nil
	}
	e := rowExamination{examination{config: s.config}, l}
	var repeat bool
	err = s.readOnly(ctx, func(ctx context.Context, tx pgx.Tx) error {
		behind, err := e.behind(ctx, tx, at)
		if err != nil {
			return err
		}
		_, err = l.recount(ctx, tx, s.config, l.sequence, horizon)
		repeat = behind != nil || errors.Is(err, errRecounted)
		if repeat {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("find out whether the ids of %s have started again: %w", l.name(), lasting(err))
	}
	return repeat, nil
}
