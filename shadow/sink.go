package shadow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Sink records calls. It implements processor.TxSink.
type Sink struct {
	config Config
	insert string
}

var _ processor.TxSink = (*Sink)(nil)

// New makes a sink.
func New(c Config) (*Sink, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure shadow: %w", err)
	}
	if c.Other != nil {
		c.As = cmp.Or(c.As, c.Other.Process)
	}
	return &Sink{config: c, insert: on(insertSQL, c.Table)}, nil
}

// insertSQL writes the row of a record, or replaces it. It locks that row, by the primary key.
const insertSQL = `/* shadow.record */
INSERT INTO {table} AS c (
	process, position, sequence, dedup_key, target, headers, body,
	other, other_target, other_headers, other_body, differs
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (process, position) DO UPDATE SET
	sequence = excluded.sequence,
	dedup_key = excluded.dedup_key,
	target = excluded.target,
	headers = excluded.headers,
	body = excluded.body,
	other = excluded.other,
	other_target = excluded.other_target,
	other_headers = excluded.other_headers,
	other_body = excluded.other_body,
	differs = excluded.differs,
	recorded_at = excluded.recorded_at`

// DeliverTx records the call for a record. If the sink cannot send the record, that is the error, as in a delivery.
func (s *Sink) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	row := row{process: d.Process, position: string(d.Position), sequence: d.Sequence, dedupKey: d.DedupKey()}
	d.Process = cmp.Or(s.config.As, d.Process)
	var err error
	if row.call, err = s.config.Sink.Render(d); err != nil {
		return err
	}
	if s.config.Other != nil {
		if err := s.compare(ctx, d, &row); err != nil {
			return err
		}
	}
	values, err := row.values()
	if err != nil {
		return processor.Permanent(fmt.Errorf("record the call of record %q: %w", visible.Cut(d.ID), err))
	}
	if _, err := tx.Exec(ctx, s.insert, values...); err != nil {
		return s.failure(d, err)
	}
	return nil
}

// compare adds the call of the other version, and how it differs. A record that the other version cannot send is a
// difference. An outage is an error.
func (s *Sink) compare(ctx context.Context, d processor.Delivery, row *row) error {
	other := s.config.Other
	row.other = other.Process
	call, err := other.render(ctx, d)
	switch {
	case err == nil:
		row.differs = differences(row.call, call)
	case processor.IsPermanent(err) && !processor.IsRefused(err) && ctx.Err() == nil:
		row.differs = []string{"no call: the other process cannot send this record"}
		return nil
	default:
		return fmt.Errorf("make the call of process %s, to compare with: %w", visible.Cut(other.Process), err)
	}
	if len(row.differs) > 0 {
		row.otherCall = &call
	}
	return nil
}

// render returns the call of a version for a record that was prepared for another one.
func (v *Version) render(ctx context.Context, d processor.Delivery) (sinks.Call, error) {
	made := d.Row()
	if v.Prepare != nil {
		var err error
		if made, err = v.Prepare(ctx, made); err != nil {
			if !processor.IsPermanent(err) {
				err = processor.Unreached(errors.New(err.Error())) // an outage, as in the processor
			}
			return sinks.Call{}, err
		}
	}
	d.Type, d.Headers, d.Payload = made.Type, made.Headers, made.Payload
	return v.Sink.Render(d)
}

// row is a row of the table.
type row struct {
	process   string
	position  string
	sequence  int64
	dedupKey  string
	call      sinks.Call
	other     string      // "" if there is none
	otherCall *sinks.Call // nil if it is the same, or cannot be made
	differs   []string    // empty if both are the same
}

// values are the parameters of insertSQL.
func (r row) values() ([]any, error) {
	target, headers, body, err := stored(r.call)
	if err != nil {
		return nil, err
	}
	values := []any{r.process, r.position, r.sequence, text(r.dedupKey), target, headers, body, nil, nil, nil, nil, nil}
	if r.other == "" {
		return values, nil
	}
	differs := []string{} // NULL would mean that nothing was compared
	for _, what := range r.differs {
		differs = append(differs, text(what))
	}
	values[7], values[11] = r.other, differs
	if r.otherCall != nil {
		if values[8], values[9], values[10], err = stored(*r.otherCall); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// stored returns a call as columns can hold it.
func stored(c sinks.Call) (target, headers string, body []byte, err error) {
	all := make(map[string]string, len(c.Headers))
	for name, value := range c.Headers {
		all[text(name)] = text(value)
	}
	encoded, err := json.Marshal(all)
	if body = c.Body; body == nil {
		body = []byte{}
	}
	return text(c.Target), string(encoded), body, err
}

// text returns a text as PostgreSQL can hold it: in UTF-8, and without NUL.
func text(raw string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(raw, "\uFFFD"), "\x00", "\uFFFD")
}
