package exec

import (
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	// maxBeside bounds the records beside which a child is quoted, in bytes.
	maxBeside = 4 << 20
	// recordCost is what the comparison with a record costs besides its size.
	recordCost = 1 << 10
)

// beside are records that a child may speak of.
type beside struct {
	records []processor.Delivery
	bytes   int
}

func besides(records []processor.Delivery) (b beside) {
	for _, d := range records {
		b.add(d)
	}
	return b
}

// add notes a record. Where there is too much of them, none has to be kept.
func (b *beside) add(d processor.Delivery) {
	if b.bytes > maxBeside {
		return
	}
	b.bytes += recordCost + len(d.Payload) + len(d.Key)
	for name, value := range d.Headers {
		b.bytes += len(name) + len(value)
	}
	b.records = append(b.records, d)
	if b.bytes > maxBeside {
		b.records = nil
	}
}

func (b beside) clone() beside { return beside{slices.Clone(b.records), b.bytes} }

// redact takes the records out of a text; of all of it nothing is left where they are
// too much to be compared.
func (b beside) redact(text string) string {
	if b.bytes > maxBeside {
		return "[…]"
	}
	for _, d := range b.records {
		text = d.Redact(text)
	}
	return text
}
