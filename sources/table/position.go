package table

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// kind tags the positions of one order over one family of ids. Positions of different kinds must not be compared, so
// each kind begins differently.
type kind string

const (
	kindAtInt  kind = "at.int"  // created_at, then smallint, integer or bigint
	kindAtUUID kind = "at.uuid" // created_at, then uuid
	kindAtText kind = "at.text" // created_at, then text as bytes
	kindInt    kind = "int"     // smallint, integer or bigint alone
)

// key holds the parts of a position, by value.
type key struct {
	at int64  // microseconds since 1970; unused in kindInt
	id string // as the server prints it
}

const (
	atLayout = "2006-01-02T15:04:05.000000Z"
	intWidth = 20
)

// The range of times that atLayout prints in a fixed width.
var (
	minAt = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	maxAt = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC).UnixMicro()
)

// position makes the position of a key: tag, time and id, each of fixed width (a text id comes last). So the bytes of
// positions sort as the records do.
func (k kind) position(key key) (cursor.Position, error) {
	b, err := k.append(nil, key.at, []byte(key.id), new(second))
	return cursor.Position(b), err
}

// second is the last second that was printed. Records come in order, and most of them share a second.
type second struct {
	unix int64
	text [len("2006-01-02T15:04:05.")]byte
}

// append writes a position to the end of b.
func (k kind) append(b []byte, at int64, id []byte, last *second) ([]byte, error) {
	b = append(append(b, k...), ':')
	if k != kindInt {
		if at < minAt || at > maxAt {
			return nil, fmt.Errorf("its created_at lies outside the years 1 to 9999")
		}
		t := time.UnixMicro(at)
		if last.text[0] == 0 || last.unix != t.Unix() {
			last.unix = t.Unix()
			t.UTC().AppendFormat(last.text[:0], "2006-01-02T15:04:05.")
		}
		b = append(b, last.text[:]...)
		b = appendPadded(b, uint64(t.Nanosecond()/1000), 6)
		b = append(b, 'Z', '/')
	}
	if k == kindAtInt || k == kindInt {
		return appendInt(b, id)
	}
	return append(b, id...), nil
}

// appendInt prints any 64-bit integer in 20 bytes that sort as numbers do. '-' comes before '0', and a negative
// number counts up from the smallest.
func appendInt(b []byte, id []byte) ([]byte, error) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("parse its id: %w", err)
	}
	if n < 0 {
		return appendPadded(append(b, '-'), uint64(n-math.MinInt64), intWidth-1), nil
	}
	return appendPadded(b, uint64(n), intWidth), nil
}

func appendPadded(b []byte, n uint64, width int) []byte {
	const zeros = "00000000000000000000"
	var digits [len(zeros)]byte
	text := strconv.AppendUint(digits[:0], n, 10) // two digits at a time
	return append(append(b, zeros[:max(0, width-len(text))]...), text...)
}

// parse reads a position that this kind made.
func (k kind) parse(p cursor.Position) (key, error) {
	tag, rest, _ := strings.Cut(string(p), ":")
	if kind(tag) != k {
		return key{}, fmt.Errorf("position %q does not belong to this source, whose positions begin with %q: "+
			"its table, order or id type is not what the cursor was advanced with; "+
			"put the configuration back, or name the process anew", p, string(k)+":")
	}
	result, ok := k.take(rest)
	// A position that is spelled in another way would also sort differently.
	if again, err := k.position(result); !ok || err != nil || again != p {
		return key{}, fmt.Errorf("position %q is malformed: a position looks like %q", p, string(k.example()))
	}
	return result, nil
}

var uuidText = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// take reads the part after the tag.
func (k kind) take(rest string) (result key, ok bool) {
	if k != kindInt {
		at, id, ok := strings.Cut(rest, "/")
		t, err := time.Parse(atLayout, at)
		if !ok || err != nil {
			return key{}, false
		}
		result.at, rest = t.UnixMicro(), id
	}
	switch k {
	case kindAtText:
		result.id, ok = rest, true
	case kindAtUUID:
		result.id, ok = rest, uuidText.MatchString(rest)
	default:
		var n int64
		n, ok = parseInt(rest)
		result.id = strconv.FormatInt(n, 10)
	}
	return result, ok
}

func parseInt(text string) (int64, bool) {
	if len(text) != intWidth {
		return 0, false
	}
	if text[0] == '-' {
		n, err := strconv.ParseUint(text[1:], 10, 63)
		return int64(n) + math.MinInt64, err == nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}

// example returns a position of this kind, for messages.
func (k kind) example() cursor.Position {
	p, _ := k.position(key{at: minAt, id: k.lowestID()})
	return p
}

// highestID is the id after which none sorts; texts have no such id.
func (k kind) highestID() string {
	if k == kindAtUUID {
		return "ffffffff-ffff-ffff-ffff-ffffffffffff"
	}
	return strconv.Itoa(math.MaxInt64)
}

// lowestID is the id before which none sorts.
func (k kind) lowestID() string {
	switch k {
	case kindAtUUID:
		return "00000000-0000-0000-0000-000000000000"
	case kindAtText:
		return ""
	default:
		return strconv.Itoa(math.MinInt64)
	}
}

// Moment returns the time in a position of a source that is ordered by time, and whether it has one.
func Moment(p cursor.Position) (time.Time, bool) {
	tag, rest, _ := strings.Cut(string(p), ":")
	if !slices.Contains([]kind{kindAtInt, kindAtUUID, kindAtText}, kind(tag)) {
		return time.Time{}, false
	}
	at, _, _ := strings.Cut(rest, "/")
	t, err := time.Parse(atLayout, at)
	return t, err == nil
}
