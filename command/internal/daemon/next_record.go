package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Next reads the first record after a position of a process, with its payload, as the source has it: before claims and
// upcast. It needs the process in the file. It returns nil if there is no record. It does not wait for the fence, so for
// a process whose record does not fail, another record may still come before it.
func (r *StatusReader) Next(ctx context.Context, process string, after cursor.Position) (*processor.Record, error) {
	p, ok := r.written(process)
	if !ok {
		return nil, fmt.Errorf("process %s is not in the file, which describes its table: name the configuration with -c", visible.Line(process))
	}
	config := p.Source
	config.Delivered = true
	source, err := r.config.Config.sourceOf(p, config, r.pool, nil)
	if err != nil {
		return nil, err
	}
	page, err := source.Read(ctx, after, 1)
	if err != nil {
		return nil, Reachable(err)
	}
	if len(page.Records) == 0 {
		return nil, nil
	}
	record := page.Records[0]
	record.Payload = slices.Clone(record.Payload) // the source uses its memory again
	return &record, nil
}
