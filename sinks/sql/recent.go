package sql

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// recent are digests of the dedup keys of the last records that were applied, of one for each number,
// the last one of the number that the process has come to. They prove of a record that comes again
// after a promotion that it is one of them. A number without a record that was applied is blank.
type recent []byte

const (
	digestSize = 6
	// mostRecent records come again without a doubt: those of a checkpoint, and what a standby may
	// lag by. It keeps the row within a fifth of a page.
	mostRecent = 256
)

func digest(d processor.Delivery) []byte {
	sum := sha256.Sum256([]byte(d.DedupKey()))
	return sum[:digestSize]
}

// past leaves a number of records out.
func (r recent) past(gap int64) recent {
	if gap < 0 || gap >= mostRecent {
		return nil
	}
	return append(r[:len(r):len(r)], make(recent, gap*digestSize)...).last()
}

func (r recent) last() recent { return r[max(0, len(r)-mostRecent*digestSize):] }

// has reports whether a record is the one that stands so many numbers back; 1 is the last one.
func (r recent) has(d processor.Delivery, back int64) bool {
	at := int64(len(r)) - back*digestSize
	return back > 0 && at >= 0 && bytes.Equal(r[at:at+digestSize], digest(d))
}

// with notes records that are applied now.
func (a applied) with(ds []processor.Delivery) applied {
	all := append(make(recent, 0, len(a.recent)+len(ds)*digestSize), a.recent...)
	for _, d := range ds {
		if gap := a.gap(d); gap != 0 {
			all = all.past(gap)
		}
		all = append(all, digest(d)...)
		a.position, a.sequence = d.Position, d.Sequence
	}
	a.recent, a.dedupKey = all.last(), ds[len(ds)-1].DedupKey()
	return a
}

func (r recent) text() string { return `\x` + hex.EncodeToString(r) }

func parseRecent(text []byte) (recent, error) {
	digits, isHex := bytes.CutPrefix(text, []byte(`\x`))
	all := make(recent, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(all, digits); err != nil || len(text) > 0 && !isHex || len(all)%digestSize != 0 {
		return nil, fmt.Errorf("the column recent is not what was written there: %d bytes", len(text))
	}
	return all, nil
}
