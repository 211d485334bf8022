package webhook

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// The example of the CloudEvents HTTP binding 1.0.2, section 3.1.3.2.
func TestEscape_MatchesTheBindingsExample(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Euro%20%E2%82%AC%20%F0%9F%98%80", escape("Euro € 😀"))
	require.Equal(t, "a/b:c~!'()", escape("a/b:c~!'()"))
}

// anyString draws what a text column may hold, and what none should.
func anyString() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringOf(rapid.SampledFrom([]rune("\r\n\x00\t\"%.: €;,a"))),
	)
}

func TestEscape_GivesEveryByteBackAfterOneRoundOfDecoding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := anyString().Draw(t, "value")
		escaped := escape(value)
		for i := range len(escaped) {
			require.True(t, escaped[i] > ' ' && escaped[i] < 0x7f && escaped[i] != '"')
		}
		back, err := url.PathUnescape(escaped)
		require.NoError(t, err)
		require.Equal(t, value, back)
	})
}

func TestDeliver_AnyRecordArrivesWithItsHeadersAndNoOthers(t *testing.T) {
	t.Parallel()
	receiver, requests := record(t)
	s := newSink(t, Config{URL: receiver, Secret: secret, Format: CloudEvents})
	expected := s.header(delivery(), []byte(delivery().Payload), time.Now())
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		d := delivery()
		d.Process = "p" + anyString().Draw(t, "process")
		d.Table = "t" + anyString().Draw(t, "table")
		d.ID = anyString().Draw(t, "id")
		d.Key = "k" + anyString().Draw(t, "key")
		d.Type = "t" + anyString().Draw(t, "type")
		require.NoError(t, s.Deliver(t.Context(), d))

		r := requests()[n]
		n++
		require.Equal(t, exact, string(r.body))
		requireHeader(t, d.Process, r.header, "Ordered-Process")
		requireHeader(t, d.Key, r.header, "Ordered-Key")
		requireHeader(t, d.Type, r.header, "Ordered-Type")
		requireHeader(t, d.Type, r.header, "Ce-Type")
		requireHeader(t, d.DedupKey(), r.header, "Idempotency-Key")
		requireHeader(t, d.DedupKey(), r.header, "Webhook-Id")
		requireHeader(t, d.DedupKey(), r.header, "Ce-Id")
		require.Len(t, r.header, len(expected)+1, "and Content-Length")
	})
}

func requireHeader(t *rapid.T, want string, header http.Header, name string) {
	require.Len(t, header[name], 1)
	got, err := url.PathUnescape(header[name][0])
	require.NoError(t, err)
	require.Equal(t, want, got, name)
}

func TestIdentity_DotsOfTheRowAreEncodedEverywhereBehindTheTable(t *testing.T) {
	t.Parallel()
	d := processor.Delivery{Record: processor.Record{Table: "public.t", ID: "a.1.b"}}
	require.Equal(t, "public.t/a%2E1%2Eb", identity(d))
	require.Equal(t, 1, strings.Count(identity(d), "."))
}
