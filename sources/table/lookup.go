package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoKey reports that the source has no column for the key of a record.
var ErrNoKey = errors.New("the source reads no key")

// errNoValue reports a text that is no value of the column's type, so no row has it.
var errNoValue = errors.New("the column has no such value")

// maxMatches is how many rows with one value a search sorts.
const maxMatches = 10_000

// ByID returns the committed records that have an id, the last ones first, as Peek does. Without an index that begins
// with the id column, the server searches the whole table, for at most 10 s.
func (s *Source) ByID(ctx context.Context, id string, limit, maxPayload int) ([]Shown, error) {
	return s.by(ctx, s.config.Columns.ID, id, limit, maxPayload)
}

// ByKey is ByID for the key of records. It returns ErrNoKey if Config.Columns names no key. Of very many records with one
// key it returns any.
func (s *Source) ByKey(ctx context.Context, key string, limit, maxPayload int) ([]Shown, error) {
	if s.config.Columns.Key == "" {
		return nil, fmt.Errorf("%w: name its column in source.columns.key", ErrNoKey)
	}
	return s.by(ctx, s.config.Columns.Key, key, limit, maxPayload)
}

// bySQL finds the rows first and sorts them then. Otherwise the planner may walk along the order to meet them. The role may
// not have the right to read each column.
const bySQL = `(%[1]s) IN (SELECT %[1]s FROM (SELECT %[1]s FROM %[2]s AS t WHERE t.%[3]s = $1 AND %[4]s LIMIT %[5]d) AS t ORDER BY %[6]s DESC LIMIT %[7]d)
ORDER BY %[6]s DESC`

func (s *Source) by(ctx context.Context, column, value string, limit, maxPayload int) ([]Shown, error) {
	all, err := s.show(ctx, maxPayload, func(l *layout, ask asker) (string, [][]byte, error) {
		// The type of the parameter is that of the column, so an index of the column serves.
		order := l.orderBy(s.config)
		where := fmt.Sprintf(bySQL, strings.Join(order, ", "), l.sql(), quote(column), l.behind(s.config, true), maxMatches, strings.Join(order, " DESC, "), limit)
		return where, [][]byte{[]byte(value)}, s.hurry(ask)
	})
	if err = s.missed(column, err); errors.Is(err, errNoValue) {
		return nil, nil
	}
	return all, err
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
