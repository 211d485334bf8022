package jsonline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// awkward draws texts of all that a string of JSON spells in a way of its own.
func awkward() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringOf(rapid.SampledFrom([]rune("\x00\x01\b\f\n\r\t\x1f\x7f\"\\/<>&é\u2027\u2028\u2029\u202a\ufffd😀"))),
	)
}

func TestAppendText_SpellsAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := awkward().Draw(t, "value")
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(value))
		require.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(appendText(nil, value)))
		require.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(appendText(nil, []byte(value))))
	})
}

func TestAppend_TheLineIsCountedToTheByteBeforeItIsMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := processor.Delivery{
			Record: processor.Record{
				Position: cursor.Position(awkward().Draw(t, "position")),
				Table:    awkward().Draw(t, "table"),
				ID:       awkward().Draw(t, "id"),
				Key:      awkward().Draw(t, "key"),
				Type:     awkward().Draw(t, "type"),
				Headers:  rapid.MapOf(awkward(), awkward()).Draw(t, "headers"),
				Payload:  payload().Draw(t, "payload"),
			},
			Process:  awkward().Draw(t, "process"),
			Origin:   awkward().Draw(t, "origin"),
			Sequence: rapid.Int64().Draw(t, "sequence"),
			Epoch:    cursor.Epoch(rapid.Int64().Draw(t, "epoch")),
			Attempt:  rapid.Int().Draw(t, "attempt"),
		}
		if rapid.Bool().Draw(t, "timed") {
			d.CreatedAt = time.UnixMicro(rapid.Int64Range(-1e15, 1e16).Draw(t, "created"))
		}
		if rapid.Bool().Draw(t, "replay") {
			d.After = d.Position
		}
		var buf bytes.Buffer
		require.NoError(t, Append(&buf, d, 1<<30))
		require.Equal(t, buf.Len(), lineLen(d))
		require.LessOrEqual(t, buf.Len(), atMost(d))
		require.Equal(t, 1, bytes.Count(buf.Bytes(), []byte("\n")))
		require.True(t, utf8.Valid(buf.Bytes()))

		var exact bytes.Buffer
		require.NoError(t, Append(&exact, d, buf.Len()))
		var none bytes.Buffer
		require.Equal(t, &TooLargeError{buf.Len(), buf.Len() - 1}, Append(&none, d, buf.Len()-1))
		require.Zero(t, none.Len())
	})
}

func payload() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.Map(awkward(), func(s string) []byte { return []byte(s) }),
		rapid.Map(awkward(), func(s string) []byte {
			text, _ := json.Marshal(map[string]string{s: s})
			return bytes.ReplaceAll(text, []byte(":"), []byte(" :\t\n\r "))
		}),
		rapid.SampledFrom([][]byte{nil, []byte(" "), []byte(" { } "), []byte("[1, 2 ,\"a b\\\" c\\\\\"]\n"), []byte("\xff"), []byte("{\"a\":\"\x9b\"}")}),
	)
}

// What is refused takes no memory to speak of, and what is taken is made once.
func TestAppend_MakesRoomForOneLine(t *testing.T) {
	const size = 8 << 20
	long := strings.Repeat("\x01", size)
	for name, d := range map[string]processor.Delivery{
		"payload": {Record: processor.Record{Payload: []byte(long)}},
		"key":     {Record: processor.Record{Key: long}},
		"type":    {Record: processor.Record{Type: long}},
		"id":      {Record: processor.Record{ID: long}},
		"header":  {Record: processor.Record{Headers: map[string]string{"h": long}}},
		"name":    {Record: processor.Record{Headers: map[string]string{long: "v"}}},
	} {
		var none bytes.Buffer
		err := Append(&none, d, 2*size)
		var large *TooLargeError
		require.ErrorAs(t, err, &large, name)
		require.Greater(t, large.Bytes, 6*size, name)
		require.Zero(t, none.Cap(), name)

		var line bytes.Buffer
		require.NoError(t, Append(&line, d, large.Bytes), name)
		require.Less(t, line.Cap(), large.Bytes+large.Bytes/8, name)
	}
}
