package stdout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func delivery(payload string) processor.Delivery {
	return processor.Delivery{
		Record: processor.Record{
			Position:  "c:1/42",
			Table:     "public.bookings",
			ID:        "9007199254740993",
			Key:       "customer-7",
			Type:      "booking <confirmed> & paid",
			CreatedAt: time.Date(2026, 1, 2, 4, 4, 5, 60_000, time.FixedZone("CET", 3600)),
			Headers:   map[string]string{"trace": "a\nb"},
			Payload:   []byte(payload),
		},
		Process:  "sms",
		Sequence: 9223372036854775807,
		Epoch:    3,
		Attempt:  2,
		Origin:   "f3a1",
	}
}

func newSink(t testing.TB, w io.Writer) *Sink {
	t.Helper()
	s, err := New(Config{Writer: w})
	require.NoError(t, err)
	return s
}

// writes keeps each Write apart.
type writes [][]byte

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, bytes.Clone(p))
	return len(p), nil
}

func TestNew_NeedsAWriter(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	require.ErrorContains(t, err, "os.Stdout")
}

func TestDeliver_WritesTheContractsLineInOneWrite(t *testing.T) {
	t.Parallel()
	var w writes
	require.NoError(t, newSink(t, &w).Deliver(t.Context(), delivery(`{"a":1}`)))
	require.Len(t, w, 1)
	require.Equal(t, `{"process":"sms","sequence":"9223372036854775807","epoch":"3","attempt":2,"origin":"f3a1","replay":false,"position":"c:1/42",`+
		`"id":"9007199254740993","key":"customer-7","type":"booking <confirmed> & paid","created_at":"2026-01-02T03:04:05.000060Z",`+
		`"headers":{"trace":"a\nb"},"payload":{"a":1},"dedup_key":"public.bookings/9007199254740993/1767323045000060"}`+"\n", string(w[0]))
}

func TestDeliver_WritesNullsForWhatTheRecordHasNot(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	d := processor.Delivery{Record: processor.Record{Payload: json.RawMessage{}}}
	require.NoError(t, newSink(t, &w).Deliver(t.Context(), d))
	require.Equal(t, `{"process":"","sequence":"0","epoch":"0","attempt":0,"origin":"","replay":false,"position":"","id":"","key":"","type":"",`+
		`"created_at":null,"headers":{},"payload":null,"dedup_key":"/"}`+"\n", w.String())
}

// TestDeliver_MarksAReplay: a reader that wants the order leaves such a record out of its turn, as docs/wire.md has it.
func TestDeliver_MarksAReplay(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	d := delivery(`1`)
	d.After = d.Position
	require.NoError(t, newSink(t, &w).Deliver(t.Context(), d))
	require.Contains(t, w.String(), `"origin":"f3a1","replay":true,"position":"c:1/42"`)
}

func TestDeliver_KeepsThePayloadsTokens(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		"{\n\t\"b\" : 1,\r\n \"a\":\t2, \"a\": 3 }":                `{"b":1,"a":2,"a":3}`,
		`[9007199254740993, 1e400, -0.10, 12345678901234567890.0]`: `[9007199254740993,1e400,-0.10,12345678901234567890.0]`,
		`"\u0000 \ud800 \u00e9 \/ \n <&> '"`:                       `"\u0000 \ud800 \u00e9 \/ \n <&> '"`,
		"\"two\u2028lines, they say \u2029\"":                      "\"two\u2028lines, they say \u2029\"",
		" null\n":                                                  `null`,
		`"  spaces  in  strings  "`:                                `"  spaces  in  strings  "`,
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000):    strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
	} {
		var w bytes.Buffer
		require.NoError(t, newSink(t, &w).Deliver(t.Context(), delivery(payload)))
		require.Contains(t, w.String(), `"payload":`+want+`,"dedup_key"`)
		require.Equal(t, 1, strings.Count(w.String(), "\n"))
	}
}

// A text that is not JSON is that record's text, and no reason to halt.
func TestDeliver_PayloadThatIsNotJSONIsAString(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"hello", " ", "{", `{"a":1} {}`, "\x00", "'a'", "\"a\nb\"", "\"\x01\"", "01", "NaN", "<é\u2028>", `{"a":1}` + "\n" + `{"a":2}`} {
		var w bytes.Buffer
		require.NoError(t, newSink(t, &w).Deliver(t.Context(), delivery(payload)))
		var got struct {
			Payload  string
			DedupKey string `json:"dedup_key"`
		}
		require.NoError(t, json.Unmarshal(w.Bytes(), &got), "%q", payload)
		require.Equal(t, payload, got.Payload)
		require.NotEmpty(t, got.DedupKey)
		require.Equal(t, 1, strings.Count(w.String(), "\n"))
	}
}

func TestDeliver_PayloadThatIsNotUTF8IsBase64(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"\xff", "caf\xe9", `{"a":` + "\xc3" + `}`, "{\"customer\":\"\x9b\"}"} {
		var w bytes.Buffer
		require.NoError(t, newSink(t, &w).Deliver(t.Context(), delivery(payload)))
		var got struct {
			Payload *string
			Base64  []byte `json:"payload_base64"`
		}
		require.NoError(t, json.Unmarshal(w.Bytes(), &got), "%q", payload)
		require.Nil(t, got.Payload)
		require.Equal(t, payload, string(got.Base64))
	}
}

func TestDeliver_AnyRecordIsOneLineThatGivesItBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("\r\n\u2028\x00\"\\é"))))
		d := delivery(payload().Draw(t, "payload"))
		d.Process = text.Draw(t, "process")
		d.ID = text.Draw(t, "id")
		d.Key = text.Draw(t, "key")
		d.Type = text.Draw(t, "type")
		d.Headers = rapid.MapOf(text, text).Draw(t, "headers")
		var w bytes.Buffer
		s, err := New(Config{Writer: &w})
		require.NoError(t, err)
		require.NoError(t, s.Deliver(context.Background(), d))

		require.Equal(t, 1, bytes.Count(w.Bytes(), []byte("\n")))
		require.True(t, bytes.HasSuffix(w.Bytes(), []byte("\n")))
		var got struct {
			Process  string            `json:"process"`
			ID       string            `json:"id"`
			Key      string            `json:"key"`
			Type     string            `json:"type"`
			Headers  map[string]string `json:"headers"`
			Payload  json.RawMessage   `json:"payload"`
			DedupKey string            `json:"dedup_key"`
		}
		require.NoError(t, json.Unmarshal(w.Bytes(), &got))
		require.Equal(t, []string{d.Process, d.ID, d.Key, d.Type, d.DedupKey()}, []string{got.Process, got.ID, got.Key, got.Type, got.DedupKey})
		require.Equal(t, d.Headers, got.Headers)
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, d.Payload))
		require.Equal(t, compact.String(), string(got.Payload))
	})
}

// payload draws JSON with white space of all kinds between its tokens.
func payload() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.StringOfN(rapid.SampledFrom([]rune(" \n\r\t")), 0, 3, -1)
		leaf := rapid.SampledFrom([]string{`"\u0000"`, `1e400`, `-9007199254740993`, `"\ud800"`, `"\n"`, `null`, "\"\u2028\"", `{}`, `""`})
		var b strings.Builder
		b.WriteString(space.Draw(t, "space") + "[")
		for i := range rapid.IntRange(0, 5).Draw(t, "n") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(space.Draw(t, "space") + `{"k"` + space.Draw(t, "space") + ":" + leaf.Draw(t, "leaf") + "}" + space.Draw(t, "space"))
		}
		b.WriteString("]" + space.Draw(t, "space"))
		return b.String()
	})
}

func TestDeliver_FlushesBeforeItReturns(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	s := newSink(t, bufio.NewWriterSize(&w, 1<<20))
	require.NoError(t, s.Deliver(t.Context(), delivery("1")))
	require.Equal(t, 1, bytes.Count(w.Bytes(), []byte("\n")))
}

// failing takes the next limit bytes and then fails with err, until it is
// repaired.
type failing struct {
	bytes.Buffer
	limit int
	err   error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.limit < 0 {
		return f.Buffer.Write(p)
	}
	n, _ := f.Buffer.Write(p[:min(f.limit, len(p))])
	return n, f.err
}

func TestDeliver_FailedFlushIsAnError(t *testing.T) {
	t.Parallel()
	s := newSink(t, bufio.NewWriter(&failing{err: syscall.ENOSPC}))
	err := s.Deliver(t.Context(), delivery("1"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.False(t, processor.IsPermanent(err))
}

func TestDeliver_ShortWriteIsAnErrorEvenIfTheWriterHidesIt(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, newSink(t, &failing{limit: 10}).Deliver(t.Context(), delivery("1")), io.ErrShortWrite)
	require.ErrorIs(t, newSink(t, &failing{limit: 0}).Deliver(t.Context(), delivery("1")), io.ErrShortWrite)
}

func TestDeliver_EndsATornLineBeforeTheNext(t *testing.T) {
	t.Parallel()
	w := &failing{limit: 12, err: syscall.ENOSPC}
	s := newSink(t, w)
	require.ErrorIs(t, s.Deliver(t.Context(), delivery("1")), syscall.ENOSPC)
	w.limit = 0
	require.ErrorIs(t, s.Deliver(t.Context(), delivery("1")), syscall.ENOSPC)
	w.limit = -1
	require.NoError(t, s.Deliver(t.Context(), delivery("1")))
	require.NoError(t, s.Deliver(t.Context(), delivery("2")))

	lines := strings.Split(w.String(), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, `{"process":"`, lines[0])
	require.True(t, json.Valid([]byte(lines[1])))
	require.True(t, json.Valid([]byte(lines[2])))
	require.Empty(t, lines[3])
}

func TestDeliver_BrokenPipeIsAnErrorButNotThatOfTheRecord(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	err = newSink(t, w).Deliver(t.Context(), delivery("1"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.False(t, processor.IsPermanent(err))
}

func TestDeliver_EndsWithItsContextThoughNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newSink(t, w)
		for _, fault := range []string{"the write has not ended", "an earlier write has not ended"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			go func() { done <- s.Deliver(ctx, delivery("1")) }()
			synctest.Wait() // until it waits for a reader, or for its turn
			cancel(errLost)
			err := <-done
			require.ErrorIs(t, err, errLost)
			require.ErrorContains(t, err, fault)
			require.False(t, processor.IsPermanent(err))
		}
		// Once somebody reads, the line that was given up comes first, and once.
		done := make(chan error)
		go func() { done <- s.Deliver(t.Context(), delivery("2")) }()
		lines := bufio.NewScanner(r)
		for _, payload := range []string{`"payload":1`, `"payload":2`} {
			require.True(t, lines.Scan())
			require.Contains(t, lines.Text(), payload)
		}
		require.NoError(t, <-done)
	})
}

func TestDeliver_WritesNothingUnderAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	var w writes
	s := newSink(t, &w)
	for range 20 { // a select would let some through
		require.ErrorIs(t, s.Deliver(ctx, delivery("1")), errLost)
	}
	require.NoError(t, s.Deliver(t.Context(), delivery("2")))
	require.Len(t, w, 1)
}

var errLost = errors.New("lease lost")

func TestDeliver_PanickingWriterIsAnErrorOfTheDelivery(t *testing.T) {
	t.Parallel()
	s := newSink(t, (*bytes.Buffer)(nil))
	for range 2 {
		require.ErrorContains(t, s.Deliver(t.Context(), delivery("1")), "the writer panicked")
	}
}

// exclusive notes when it is called by two at a time.
type exclusive struct {
	writes
	busy, shared atomic.Bool
}

func (w *exclusive) Write(p []byte) (int, error) {
	if !w.busy.CompareAndSwap(false, true) {
		w.shared.Store(true)
		return 0, io.ErrClosedPipe
	}
	defer w.busy.Store(false)
	runtime.Gosched()
	return w.writes.Write(p)
}

func TestDeliver_LinesOfSeveralProcessesDoNotMix(t *testing.T) {
	t.Parallel()
	var w exclusive
	s := newSink(t, &w)
	done := make(chan error)
	for range 20 {
		go func() { done <- s.Deliver(t.Context(), delivery(`"`+strings.Repeat("x", 5000)+`"`)) }()
	}
	for range 20 {
		require.NoError(t, <-done)
	}
	require.False(t, w.shared.Load())
	require.Len(t, w.writes, 20)
	for _, line := range w.writes {
		require.True(t, json.Valid(line))
	}
}

// Not parallel: it counts all memory that is allocated.
func TestDeliver_CopiesALargePayloadOnce(t *testing.T) {
	const size = 32 << 20
	d := delivery(`"` + strings.Repeat("x", size) + `"`)
	s := newSink(t, io.Discard)
	runtime.GC()
	runtime.GC() // twice: pools let go of what they hold
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, s.Deliver(t.Context(), d))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size*3/2))
	require.LessOrEqual(t, s.buf.Cap(), maxKept, "and does not keep it")
}

func BenchmarkDeliver(b *testing.B) {
	s := newSink(b, io.Discard)
	d := delivery(`{"id": 42, "seats": [1, 2, 3], "customer": {"name": "Ann", "vip": false}}`)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Deliver(b.Context(), d))
	}
}
