package table

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Shown is a record for a person to look at. Its payload may be cut, so it must not be delivered.
type Shown struct {
	processor.Record
	// Bytes is the size of the whole payload, as text.
	Bytes int64
	// Withheld reports that the role may not read more than the id and the time.
	Withheld bool
}

// Cut reports that the payload is not all there.
func (s Shown) Cut() bool { return s.Bytes > int64(len(s.Payload)) }

// Peek returns the first committed records after a position, at most limit, each with at most maxPayload bytes of its
// payload. They may not be below the fence yet.
func (s *Source) Peek(ctx context.Context, after cursor.Position, limit, maxPayload int) ([]Shown, error) {
	return s.show(ctx, maxPayload, func(l *layout, _ asker) (string, [][]byte, error) {
		args, err := l.startAfter(after)
		return fmt.Sprintf("%s ORDER BY %s LIMIT %d", l.behind(s.config, after == ""), strings.Join(l.orderBy(s.config), ", "), limit), args, err
	})
}

// show runs a query for records. It asks for their keys alone if Config.KeysOnly is set, or if the role may not read
// their contents.
func (s *Source) show(ctx context.Context, maxPayload int, query func(*layout, asker) (string, [][]byte, error)) (all []Shown, err error) {
	if s.config.KeysOnly {
		return s.showKeys(ctx, query, Shown{})
	}
	err = s.ask(ctx, "show records of", func(l *layout, ask asker) error {
		where, args, err := query(l, ask)
		if err != nil {
			return err
		}
		rows, err := ask(fmt.Sprintf("/* source.show */ SELECT %s FROM %s AS t WHERE %s", l.shownFields(s.config, maxPayload), l.sql(), where), args...)
		all, err = l.shown(rows, err)
		return err
	})
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "42501" {
		return all, err
	}
	return s.showKeys(ctx, query, Shown{Withheld: true})
}

// showKeys is show without contents. Each record is one like the given one.
func (s *Source) showKeys(ctx context.Context, query func(*layout, asker) (string, [][]byte, error), like Shown) (all []Shown, err error) {
	err = s.ask(ctx, "show records of", func(l *layout, ask asker) error {
		where, args, err := query(l, ask)
		if err != nil {
			return err
		}
		records, err := l.found(ask(fmt.Sprintf("/* source.show_keys */ SELECT %s FROM %s AS t WHERE %s", l.keys(s.config), l.sql(), where), args...))
		for _, like.Record = range records {
			all = append(all, like)
		}
		return err
	})
	return all, err
}

// shownFields are the columns that shown takes.
func (l *layout) shownFields(c Config, maxPayload int) string {
	text := func(column string) string {
		if column == "" {
			return "NULL"
		}
		return "t." + quote(column) + "::text"
	}
	payload := l.of(whole).fields(c)[fieldPayload]
	size := fmt.Sprintf("octet_length((%s)::text)", payload)
	part := fmt.Sprintf("left((%s)::text, %d)", payload, maxPayload)
	if l.bytea {
		size, part = fmt.Sprintf("octet_length(%s)", payload), fmt.Sprintf("encode(substring(%s FROM 1 FOR %d), 'hex')", payload, maxPayload)
	}
	return strings.Join([]string{l.keys(c), text(c.Columns.Key), text(c.Columns.Type), text(c.Columns.Headers), size, part}, ", ")
}

// shown makes records from rows of shownFields.
func (l *layout) shown(rows [][][]byte, err error) ([]Shown, error) {
	records, err := l.found(rows, err)
	if err != nil {
		return nil, err
	}
	all := make([]Shown, len(records))
	for i, r := range records {
		values := rows[i][2:]
		r.Key, r.Type = string(values[0]), string(values[1])
		if values[2] != nil {
			_ = json.Unmarshal(values[2], &r.Headers) // what is no object of texts is shown as none: the worker names the fault
		}
		all[i].Bytes, _ = strconv.ParseInt(string(values[3]), 10, 64) // NULL without a payload
		payload := bytes.Clone(values[4])
		if l.bytea {
			if payload, err = hex.DecodeString(string(payload)); err != nil {
				return nil, fmt.Errorf("record %s: decode its payload: %w", r.ID, err)
			}
		}
		r.Payload = payload
		all[i].Record = r
	}
	return all, nil
}
