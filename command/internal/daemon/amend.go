package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// MaxPayload bounds the payload that Amend takes from a process of the file.
func (o *Operator) MaxPayload() int { return o.written.filled().Source.MaxRecordBytes }

// Amend calls operator.Operator.Amend for the failing record, which it reads from the source. Without a source it
// returns a *UsageError.
func (o *Operator) Amend(ctx context.Context, payload []byte, d cursor.Decision) (Outcome, error) {
	record, key, err := o.failing(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if json.Valid(record.Payload) && !json.Valid(payload) {
		return Outcome{}, usage("the payload of the row is JSON, and the new one is not: nothing was changed")
	}
	with := operator.Amended{Position: record.Position, DedupKey: key, Table: record.Table, RecordID: record.ID, Row: record.Payload, Payload: payload}
	change, err := o.op.Amend(ctx, o.process, with, d)
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf("record %s of %s %s delivered with the given payload (%s) instead of that of its row (%s), now and whenever it is sent again. "+
		"It %s tried at once, with its attempts counted anew%s", visible.Short(record.ID), o.process, said(d, "is", "would be"), weighed(payload), weighed(record.Payload),
		said(d, "keeps its dedup key, and is", "would keep its dedup key, and be"), o.afterwards(d, change))
	if len(record.Amend(payload).Headers) < len(record.Headers) {
		text += ". The payload of the row is compressed or a reference; the given one is taken as it is"
	}
	return o.outcome(ctx, change, text, change.Before.Position, record.Position), nil
}

// weighed describes a payload without showing it.
func weighed(payload []byte) string {
	sum := sha256.Sum256(payload)
	return fmt.Sprintf("%d bytes, SHA-256 %s…", len(payload), hex.EncodeToString(sum[:4]))
}

// failing reads the record that fails, and returns it with its dedup key.
func (o *Operator) failing(ctx context.Context) (processor.Record, string, error) {
	if o.source == nil {
		return processor.Record{}, "", usage("amend reads the record by the configuration of its process: name the file with -c")
	}
	row, err := o.store.Look(ctx, o.process)
	if err == nil && (row.Failure == nil || row.Displaced()) {
		err = operator.ErrNotFailing
	}
	if err != nil {
		return processor.Record{}, "", o.explain(ctx, err)
	}
	config := o.written.Source
	config.Delivered = true // the failing record was read already: there is nothing to wait for
	source, err := o.config.sourceOf(o.written, config, o.pool, nil)
	if err != nil {
		return processor.Record{}, "", &UsageError{err}
	}
	page, err := source.Read(ctx, row.Position, 1)
	switch {
	case err != nil:
		return processor.Record{}, "", Reachable(fmt.Errorf("read the failing record: %w", err))
	case len(page.Records) == 0 || page.Records[0].Position != row.Failure.Position:
		return processor.Record{}, "", fmt.Errorf("record %s is not the next one any more: was its row deleted, or the source of %q changed? Nothing was changed", visible.Short(row.Failure.RecordID), o.process)
	}
	record := page.Records[0]
	if record.Fault != nil {
		return record, "", fmt.Errorf("record %s cannot be read: %w. Correct its row: nothing was changed", visible.Short(record.ID), record.Fault)
	}
	history, err := row.Histories.At(record.Position)
	return record, processor.Delivery{Record: record, History: history}.DedupKey(), err
}

// Unamend calls operator.Operator.Unamend for the record at a position, or for the failing one if the position is "".
func (o *Operator) Unamend(ctx context.Context, at cursor.Position, d cursor.Decision) (Outcome, error) {
	if at == "" {
		row, err := o.store.Look(ctx, o.process)
		if err == nil && (row.Failure == nil || row.Displaced()) {
			err = fmt.Errorf("%w: name the record with --at POSITION, from `ordered-dispatcher history %s --json`", operator.ErrNotFailing, visible.Shell(o.process))
		}
		if err != nil {
			return Outcome{}, o.explain(ctx, err)
		}
		at = row.Failure.Position
	}
	change, err := o.op.Unamend(ctx, o.process, at, d)
	if errors.Is(err, operator.ErrNotAmended) {
		return Outcome{}, fmt.Errorf("%w; nothing was changed", err)
	}
	if err != nil {
		return Outcome{}, o.explain(ctx, err)
	}
	text := fmt.Sprintf("the record of %s at %s %s delivered as its row is, from now on%s", o.process, place(at), said(d, "is", "would be"), o.afterwards(d, change))
	return Outcome{Change: change, Text: text}, nil
}
