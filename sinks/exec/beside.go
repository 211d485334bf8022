package exec

import (
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	// maxBeside bounds the records, in bytes, up to which a child is quoted.
	maxBeside = 4 << 20
	// recordCost is the cost of comparing a text with a record, besides the record's size.
	recordCost = 1 << 10
)

// beside holds records that a child may repeat in its output.
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

// add notes a record. Once there is too much, none has to be kept.
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

// redact takes the records out of a text. If they are too much to be compared, nothing is left of the text.
func (b beside) redact(text string) string {
	if b.bytes > maxBeside {
		return "[…]"
	}
	for _, d := range b.records {
		text = d.Redact(text)
	}
	return text
}
