package cursor

import "context"

// SeekAnew is Seek for a source whose ids have started again (TRUNCATE … RESTART IDENTITY, setval), or may
// have: a new history begins before all records. From now on, records without a time of creation come under
// dedup keys that no record had before. This includes records that were delivered before, and a receiver does
// not recognize them: where ids only grow, use Seek. Records with a time of creation keep their keys. For a
// table, table.Source.KeysMayRepeat finds out which of the two is needed.
func (s *Store) SeekAnew(ctx context.Context, process string, to Position, d Decision) (Change, error) {
	seek := seekTo(to)
	sought := seek.apply
	seek.apply = func(row Row) (Row, error) {
		after, err := sought(row)
		if err != nil || after.Histories != row.Histories { // a new history begins already
			return after, err
		}
		anew, err := row.recounted(to)
		after.Histories = anew.Histories
		return after, err
	}
	return s.operate(ctx, process, d, seek)
}

// recounted is the row at a position, once ids have started again. It is not known which records are new: the
// ids may have passed the position since. So dedup keys change from the beginning on. Otherwise a later seek
// back would send new records under former keys.
func (r Row) recounted(to Position) (Row, error) {
	var err error
	r.Histories, err = r.Histories.begin("")
	return r.sought(to), err
}

const horizonSQL = `/* cursor.horizon */
SELECT CASE WHEN ` + horizonHoldsSQL + ` THEN horizon::text ELSE '' END
FROM {schema}.cursor
WHERE process_name = $1`

// Horizon returns a transaction id (xid8). Every transaction that wrote a record which the process has
// delivered, or an operator has passed over, has an id below it. Horizon returns "" if that is not known in
// this database, and ErrUnknown if there is no cursor.
func (s *Store) Horizon(ctx context.Context, process string) (string, error) {
	results, err := s.ask(ctx, statement{sql: s.sql(horizonSQL), args: []string{process}})
	if err == nil && len(results[0].Rows) == 0 {
		err = ErrUnknown
	}
	if err != nil {
		return "", s.explain("read the horizon of", process, err)
	}
	return string(results[0].Rows[0][0]), nil
}
