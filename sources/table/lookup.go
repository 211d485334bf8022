package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// ErrNoKey reports that the source has no column for the key of a record.
var ErrNoKey = errors.New("the source reads no key")

// errNoValue reports a text that is no value of the column's type, so no row has it.
var errNoValue = errors.New("the column has no such value")

// maxMatches is how many rows with one value a search sorts.
const maxMatches = 10_000

// ByID returns the records with an id, the last ones first, at most limit of them. Without an index that begins with the
// id column, the server searches the whole table, for at most 10 s.
func (s *Source) ByID(ctx context.Context, id string, limit int) ([]processor.Record, error) {
	return s.by(ctx, s.config.Columns.ID, id, limit)
}

// ByKey is ByID for the key of records. It returns ErrNoKey if Config.Columns names no key. Of very many records with one
// key it returns any.
func (s *Source) ByKey(ctx context.Context, key string, limit int) ([]processor.Record, error) {
	if s.config.Columns.Key == "" {
		return nil, fmt.Errorf("%w: name its column in source.columns.key", ErrNoKey)
	}
	return s.by(ctx, s.config.Columns.Key, key, limit)
}

// bySQL finds the rows first and sorts them then. Otherwise the planner may walk along the order to meet them.
const bySQL = `/* source.lookup */
SELECT %s
FROM (SELECT %s FROM %s AS t WHERE t.%s = $1 AND %s LIMIT %d) AS t
ORDER BY %s DESC
LIMIT %d`

func (s *Source) by(ctx context.Context, column, value string, limit int) (records []processor.Record, err error) {
	where := "true"
	if s.config.Where != "" {
		where = "(\n" + s.config.Where + "\n)"
	}
	err = s.ask(ctx, "look for a record of", func(l *layout, ask asker) error {
		if err := s.hurry(ask); err != nil {
			return err
		}
		columns := "t." + quote(s.config.Columns.ID)
		if l.at != "" {
			columns += ", t." + quote(l.at)
		}
		records, err = l.found(ask(fmt.Sprintf(bySQL, l.keys(s.config), columns, l.sql(), quote(column), where, maxMatches,
			strings.Join(l.orderBy(s.config), " DESC, "), limit), []byte(value)))
		return err
	})
	if err = s.missed(column, err); errors.Is(err, errNoValue) {
		return nil, nil
	}
	return records, err
}

// hurry bounds the search of a transaction.
func (s *Source) hurry(ask asker) error {
	_, err := ask(fmt.Sprintf("SET LOCAL statement_timeout = %d", s.waits.lookup.Milliseconds()))
	return err
}

// missed is the error of a search for a value of a column. It is errNoValue if no row can have it.
func (s *Source) missed(column string, err error) error {
	switch {
	case malformed(err):
		return errNoValue
	case slow(err):
		return fmt.Errorf("it was not found within %v: an index on %s would lead to it at once: %w", s.waits.lookup, quote(column), err)
	default:
		return err
	}
}
