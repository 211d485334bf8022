package sinks_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// pieces notes what is written, and whether each piece is whole.
type pieces struct {
	strings.Builder
	torn bool
}

func (p *pieces) Write(b []byte) (int, error) {
	p.torn = p.torn || !utf8.Valid(b)
	return p.Builder.Write(b)
}

func TestWriteLine_IsOneLineThatAReceiverReads(t *testing.T) {
	t.Parallel()
	texts := rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }) // as PostgreSQL has them
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", `"`, "\x00", "é", "😀", "\u2028", "\n", "<", "\xff"}).Draw(t, "unit")
		payload := strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 3, 24<<10 - 1, 24 << 10, 60_001}).Draw(t, "times"))
		payload = strings.Repeat("x", rapid.IntRange(0, 3).Draw(t, "before")) + payload
		d := processor.Delivery{
			Record: processor.Record{
				Position: "int:1", Table: "public.t", ID: texts.Draw(t, "id"), Key: texts.Draw(t, "key"), Type: "made",
				CreatedAt: time.UnixMicro(1), Headers: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "headers"), Payload: []byte(payload),
			},
			Process: "pay", Origin: "o", Sequence: 12, Epoch: 3, Attempt: 1, After: "int:1",
		}
		var w pieces
		require.NoError(t, sinks.WriteLine(&w, nil, d))
		require.False(t, w.torn)
		require.Equal(t, 1, strings.Count(w.String(), "\n"))
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(w.String()), &line))
		get := func(name string) string { text, _ := line[name].(string); return text }
		m, err := inbox.FromHeaders("", get)
		require.NoError(t, err)
		require.Equal(t, inbox.Message{Process: "pay", Origin: "o", Sequence: 12, Epoch: 3, DedupKey: d.DedupKey(), Replay: true}, m)
		require.Equal(t, d.Key, get("ordered-key"))
		headers := map[string]string{}
		for name, value := range line["headers"].(map[string]any) {
			headers[name] = value.(string)
		}
		require.Equal(t, len(d.Headers), len(headers))
		for name, value := range d.Headers {
			require.Equal(t, value, headers[name])
		}
		body := get("body")
		if !utf8.ValidString(payload) {
			decoded, err := base64.StdEncoding.DecodeString(get("body_base64"))
			require.NoError(t, err)
			body = string(decoded)
		}
		require.Equal(t, payload, body)
	})
}
