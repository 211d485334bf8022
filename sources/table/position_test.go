package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

var kinds = []kind{kindAtInt, kindAtUUID, kindAtText, kindInt}

// anyKey draws from few values as well as from all, so that parts are often equal.
func anyKey(k kind) *rapid.Generator[key] {
	return rapid.Custom(func(t *rapid.T) key {
		at := rapid.OneOf(rapid.Int64Range(-2, 2), rapid.Int64Range(minAt, maxAt)).Draw(t, "at")
		if k == kindInt {
			at = 0
		}
		return key{at: at, id: anyID(k).Draw(t, "id")}
	})
}

func anyID(k kind) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch k {
		case kindAtUUID:
			b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		case kindAtText:
			return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a/:é0")))).Draw(t, "text")
		default:
			return strconv.FormatInt(rapid.OneOf(rapid.Int64Range(-12, 12), rapid.Int64()).Draw(t, "int"), 10)
		}
	})
}

// compare is the server's order of keys: a tuple, in the column's own type.
func (k kind) compare(t require.TestingT, a, b key) int {
	if a.at != b.at {
		return compareInts(a.at, b.at)
	}
	if k == kindAtUUID || k == kindAtText {
		return strings.Compare(a.id, b.id)
	}
	x, err := strconv.ParseInt(a.id, 10, 64)
	require.NoError(t, err)
	y, err := strconv.ParseInt(b.id, 10, 64)
	require.NoError(t, err)
	return compareInts(x, y)
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func TestPosition_BytesSortAsKeysDo(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), rapid.MakeCheck(func(t *rapid.T) {
			a, b := anyKey(k).Draw(t, "a"), anyKey(k).Draw(t, "b")
			p, err := k.position(a)
			require.NoError(t, err)
			q, err := k.position(b)
			require.NoError(t, err)
			require.Equal(t, k.compare(t, a, b), strings.Compare(string(p), string(q)), "%s %s", p, q)
		}))
	}
}

func TestPosition_HoldsItsKey(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), rapid.MakeCheck(func(t *rapid.T) {
			want := anyKey(k).Draw(t, "key")
			p, err := k.position(want)
			require.NoError(t, err)
			got, err := k.parse(p)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}))
	}
}

func TestPosition_ExtremesKeepTheirWidth(t *testing.T) {
	t.Parallel()
	ordered := []string{
		strconv.FormatInt(math.MinInt64, 10), strconv.FormatInt(math.MinInt64+1, 10), "-10", "-9", "-1", "0", "1", "9", "10",
		"9007199254740993", strconv.FormatInt(math.MaxInt64, 10),
	}
	var before cursor.Position
	for _, id := range ordered {
		p, err := kindInt.position(key{id: id})
		require.NoError(t, err)
		require.Len(t, p, len("int:")+intWidth)
		require.Less(t, before, p)
		before = p
	}
	first, err := kindAtInt.position(key{at: minAt, id: ordered[0]})
	require.NoError(t, err)
	end, err := kindAtInt.position(key{at: maxAt, id: ordered[len(ordered)-1]})
	require.NoError(t, err)
	require.Len(t, first, len(end))
	require.Less(t, first, end)
}

func TestPosition_LowestIDSortsFirst(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), rapid.MakeCheck(func(t *rapid.T) {
			some := anyKey(k).Draw(t, "key")
			p, err := k.position(some)
			require.NoError(t, err)
			lowest, err := k.position(key{at: some.at, id: k.lowestID()})
			require.NoError(t, err)
			require.LessOrEqual(t, lowest, p)
		}))
	}
}

func TestPosition_RefusesTimesOutsideItsWidth(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{minAt - 1, maxAt + 1, math.MinInt64, math.MaxInt64} {
		_, err := kindAtInt.position(key{at: at, id: "1"})
		require.ErrorContains(t, err, "outside the years 1 to 9999")
	}
	for _, at := range []int64{minAt, maxAt} {
		p, err := kindAtInt.position(key{at: at, id: "1"})
		require.NoError(t, err)
		require.Contains(t, p, time.UnixMicro(at).UTC().Format("2006-"))
	}
}

func TestParse_RefusesWhatAnotherSourceMinted(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, other := range kinds {
			if k == other {
				continue
			}
			_, err := k.parse(other.example())
			require.ErrorContains(t, err, "does not belong to this source")
			require.ErrorContains(t, err, "put the configuration back")
		}
	}
}

func TestParse_RefusesWhatIsMalformed(t *testing.T) {
	t.Parallel()
	const at = "2026-01-02T03:04:05.000006Z"
	malformed := map[kind][]string{
		kindInt:    {"int:", "int:1", "int:0000000000000000000x", "int:+0000000000000000001", "int:99999999999999999999", "int:-9999999999999999999"},
		kindAtInt:  {"at.int:", "at.int:" + at, "at.int:" + at + "/", "at.int:" + at + "/7", "at.int:2026-01-02T03:04:05Z/00000000000000000001"},
		kindAtText: {"at.text:" + at, "at.text:/a", "at.text:2026-01-02T03:04:05,000006Z/a", "at.text:2026-02-30T03:04:05.000006Z/a"},
		kindAtUUID: {"at.uuid:" + at, "at.uuid:" + at + "/", "at.uuid:" + at + "/x", "at.uuid:" + at + "/6F9619FF-8B86-D011-B42D-00CF4FC964FF"},
	}
	for k, positions := range malformed {
		for _, p := range positions {
			_, err := k.parse(cursor.Position(p))
			require.ErrorContains(t, err, "malformed", p)
			require.ErrorContains(t, err, string(k.example()), "the message shows one that is not")
		}
	}
}

// Whatever parses is what position mints: two spellings of one position would
// compare as two.
func FuzzParse(f *testing.F) {
	for _, k := range kinds {
		f.Add(string(k.example()))
	}
	f.Add("at.text:2026-01-02T03:04:05.000006Z/a/b")
	f.Add("at.text:2026-01-02T03:04:05,000006Z/a")
	f.Add("int:-9223372036854775807")
	f.Add("int:09223372036854775808")
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range kinds {
			parsed, err := k.parse(cursor.Position(text))
			if err != nil {
				continue
			}
			again, err := k.position(parsed)
			require.NoError(t, err)
			require.Equal(t, text, string(again))
		}
	})
}

// Whatever position mints holds its key, and sorts as its key does: against
// another one, as bytes.
func FuzzPosition(f *testing.F) {
	f.Add(int64(0), int64(-1), []byte("a"), int64(0), int64(1), []byte("b"))
	f.Add(minAt, int64(math.MinInt64), []byte(""), maxAt, int64(math.MaxInt64), []byte("/"))
	f.Add(minAt-1, int64(9), []byte("a/b"), maxAt+1, int64(10), []byte("a:b"))
	f.Add(int64(1), int64(-10), []byte{0xff, 0}, int64(1), int64(-9), []byte("\U0010ffff"))
	f.Fuzz(func(t *testing.T, at1, n1 int64, text1 []byte, at2, n2 int64, text2 []byte) {
		for _, k := range kinds {
			a, b := k.key(at1, n1, text1), k.key(at2, n2, text2)
			p, err := k.position(a)
			if err != nil {
				require.True(t, a.at < minAt || a.at > maxAt, "refused: %v", err)
				continue
			}
			parsed, err := k.parse(p)
			require.NoError(t, err)
			require.Equal(t, a, parsed)
			if q, err := k.position(b); err == nil {
				require.Equal(t, k.compare(t, a, b), strings.Compare(string(p), string(q)), "%q %q", p, q)
			}
		}
	})
}

// key makes a key of this kind out of anything.
func (k kind) key(at, n int64, text []byte) key {
	switch k {
	case kindAtText:
		return key{at: at, id: string(text)}
	case kindAtUUID:
		var b [16]byte
		copy(b[:], text)
		return key{at: at, id: fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])}
	case kindInt:
		at = 0
	}
	return key{at: at, id: strconv.FormatInt(n, 10)}
}
