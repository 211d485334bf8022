package daemon

import (
	"context"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// amendments returns what operators gave to records of the process of a row, by their positions. A record that could not
// be read has none.
func amendments(ctx context.Context, op *operator.Operator, row cursor.Row, records []processor.Record) (map[cursor.Position]cursor.Amendment, error) {
	if len(records) == 0 {
		return nil, nil
	}
	given, err := op.Amendments(ctx, row.Process, records[0].Position, records[len(records)-1].Position)
	if err != nil || len(given) == 0 {
		return nil, err
	}
	all := map[cursor.Position]cursor.Amendment{}
	for _, r := range records {
		for _, a := range given {
			if a.Position != r.Position || r.Fault != nil {
				continue
			}
			history, err := row.Histories.At(r.Position)
			if err != nil {
				return nil, err
			}
			if d := (processor.Delivery{Record: r, History: history}); d.DedupKey() == a.DedupKey {
				all[r.Position] = a
			}
		}
	}
	return all, nil
}
