package sql

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// recent holds digests of the dedup keys of the records that were applied last, one for each number. The last one
// belongs to the number that the process has reached. If a record comes again after a promotion, the digest proves
// that it is one of them. A number without an applied record is blank.
type recent []byte

const (
	digestSize = 6
	// mostRecent is how many records can come again and be proved: those of a checkpoint, and as many as a standby may
	// lag by. It keeps the row within a fifth of a page.
	mostRecent = 256
)

func digest(d processor.Delivery) []byte {
	sum := sha256.Sum256([]byte(d.DedupKey()))
	return sum[:digestSize]
}

// past leaves out a number of records.
func (r recent) past(gap int64) recent {
	if gap < 0 || gap >= mostRecent {
		return nil
	}
	return append(r[:len(r):len(r)], make(recent, gap*digestSize)...).last()
}

func (r recent) last() recent { return r[max(0, len(r)-mostRecent*digestSize):] }

// has reports whether a record is the one that is that many numbers back; 1 is the last one.
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
