package sinktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Message is one delivery in the receiver.
type Message struct {
	DedupKey string
	Payload  string
}

// Subject is a sink and its receiver, for one test. The caller makes a new one for each test.
type Subject struct {
	// Sink is the sink under test.
	Sink processor.BatchSink
	// Received reads the receiver's messages, in its order, with a reader that is not the sink's own code.
	Received func(t testing.TB) []Message
	// Header reads a header of the receiver's messages, in its order: "" where a message has none of that name. nil: its
	// protocol has no headers.
	Header func(t testing.TB, name string) []string
	// Refuse makes the receiver refuse the records of that type until the returned function is called. nil: the
	// receiver cannot do that.
	Refuse func(t testing.TB, typ string) (restore func())
	// Away takes the receiver off the network until the returned function is called: connections break, new ones are
	// refused. nil: there is no connection.
	Away func(t testing.TB) (back func())
	// Deny makes the receiver refuse us, whatever the record: our login, our rights or our address, until the returned
	// function is called. It may return another sink, with the wrong credentials, for the denial. nil: the receiver
	// cannot do that.
	Deny func(t testing.TB) (denied processor.BatchSink, restore func())
	// Silence makes the receiver answer nothing any more, with connections open.
	Silence func(t testing.TB)
	// Another makes one more sink for the receiver, like that of another process, or of another worker of the same
	// one. Processes are distinguished as the configuration asks for. nil: the receiver belongs to the one sink.
	Another func(t testing.TB, process string) processor.BatchSink
	// Empty removes everything from the receiver. nil: that cannot be done.
	Empty func(t testing.TB)
	// Notes means that the receiver writes down the records that it has taken, and the sink asks it. No outcome is
	// open for longer than an attempt, and a record counts as taken although the receiver was emptied.
	Notes bool
	// Lose makes the receiver take the next record, in whole or in part, and ends the connection before its answer.
	// The receiver stays away until the returned function is called. nil: there is no connection.
	Lose func(t testing.TB) (back func())
	// TooLarge is a payload size in bytes that the receiver refuses; 0: none.
	TooLarge int
	// Order means that the receiver shows the order of the records even after a failure: no record after the first
	// failure lands.
	Order bool
	// Compact means that the receiver has payloads without the white space between their tokens.
	Compact bool
	// Vague: the sink cannot know whether an error is about the record.
	Vague bool
}

// One makes a BatchSink from a Sink.
func One(sink processor.Sink) processor.BatchSink { return one{sink} }

type one struct{ processor.Sink }

func (o one) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	for i, d := range ds {
		if err := o.Deliver(ctx, d); err != nil {
			return i, err
		}
	}
	return len(ds), nil
}

// patience bounds the wait for something that must come.
const patience = time.Minute

// Run checks all promises against a kind of sink.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"InOrderAndUnchanged":                  inOrder,
		"CarriesTheHeadersOfTheContract":       contract,
		"RendersWhatItSends":                   renders,
		"AcknowledgesThePrefixOfAFailure":      prefix,
		"SameDedupKeyAtEveryAttempt":           dedupKey,
		"TwoProcessesShareAReceiver":           twoProcesses,
		"AReceiverThatWasEmptiedTakesAll":      emptied,
		"IDsThatComeAgainAreOtherRecords":      idsAgain,
		"AWindowThatWasRefusedComesOnce":       windowRefused,
		"EndsWithItsContext":                   endsWithContext,
		"EndsWithItsContextWhileConnecting":    endsWhileConnecting,
		"CloseAtASilentReceiverEndsSoon":       closeAtSilence,
		"ReceiverAwayAtStart":                  awayAtStart,
		"ReceiverAwayInMidRun":                 awayInMidRun,
		"ALostConnectionIsUnknown":             lost,
		"RecordTooLargeIsPermanent":            tooLarge,
		"ARefusalOfUsIsNoVerdictOnARecord":     denied,
		"AwkwardValuesBreakNothing":            awkward,
		"AnEmptyBatchIsAcknowledged":           empty,
		"ErrorsNameTheRecordAndHideThePayload": errorsHidePayload,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, subject(t))
		})
	}
}

// Deliveries returns n records from the id first on, each with a payload of its own.
func Deliveries(first, n int) []processor.Delivery {
	ds := make([]processor.Delivery, n)
	for i := range ds {
		ds[i] = delivery(first + i)
	}
	return ds
}

func delivery(id int) processor.Delivery {
	return processor.Delivery{
		Record: processor.Record{
			Position: position(id), Table: "app.bookings", ID: fmt.Sprint(id), Key: "customer", Type: "made",
			CreatedAt: time.UnixMicro(1_700_000_000_000_000 + int64(id)).UTC(),
			Payload:   fmt.Appendf(nil, `{"id": %d,  "n": 1e400, "s": "é\u0000"}`, id),
		},
		Process: "sms", Sequence: int64(id), Epoch: 3, Origin: "here", Attempt: 1, After: position(id - 1),
	}
}

func position(id int) cursor.Position { return cursor.Position(fmt.Sprintf("int:%020d", id)) }

// messages returns deliveries as a receiver has them.
func (s Subject) messages(ds []processor.Delivery) []Message {
	all := []Message{}
	for _, d := range ds {
		payload := bytes.NewBuffer(d.Payload)
		if s.Compact {
			payload = new(bytes.Buffer)
			_ = json.Compact(payload, d.Payload) // the payloads of these tests are JSON
		}
		all = append(all, Message{d.DedupKey(), payload.String()})
	}
	return all
}

// eventually delivers all records as a processor does: it does not send acknowledged records again.
func eventually(t testing.TB, s Subject, ds []processor.Delivery) {
	t.Helper()
	until := time.Now().Add(patience)
	for len(ds) > 0 {
		n, err := Deliver(t, s.Sink, ds)
		ds = ds[n:]
		if err == nil {
			continue
		}
		require.False(t, processor.IsPermanent(err), err)
		require.True(t, time.Now().Before(until), err)
		ds[0].Attempt++
		time.Sleep(20 * time.Millisecond)
	}
}

// requireOrder requires that a receiver has all messages in order. A message may be repeated directly after itself.
func requireOrder(t testing.TB, want, got []Message) {
	t.Helper()
	var once []Message
	for _, m := range got {
		if len(once) == 0 || once[len(once)-1] != m {
			once = append(once, m)
		}
	}
	require.Equal(t, want, once)
}

func inOrder(t *testing.T, s Subject) {
	ds := Deliveries(1, 50)
	Delivered(t, s.Sink, ds)
	require.Equal(t, s.messages(ds), s.Received(t))
}

func prefix(t *testing.T, s Subject) {
	if s.Refuse == nil {
		t.Log("the receiver refuses no single record")
		return
	}
	ds := Deliveries(1, 10)
	ds[4].Type = "refused"
	restore := s.Refuse(t, "refused")
	n, err := Deliver(t, s.Sink, ds)
	require.Error(t, err)
	require.Equal(t, 4, n)
	got := s.Received(t)
	require.Equal(t, s.messages(ds[:4]), got[:4])
	if s.Order {
		require.Len(t, got, 4, "something was sent past the failure")
	}
	restore()
	eventually(t, s, ds[4:])
	if s.Order {
		requireOrder(t, s.messages(ds), s.Received(t))
	}
}

func dedupKey(t *testing.T, s Subject) {
	first, again := delivery(1), delivery(1)
	again.Attempt, again.Epoch = 2, 4
	for _, d := range []processor.Delivery{first, again} {
		Delivered(t, s.Sink, []processor.Delivery{d})
	}
	for _, m := range s.Received(t) {
		require.Equal(t, first.DedupKey(), m.DedupKey)
	}
}

func endsWithContext(t *testing.T, s Subject) {
	Delivered(t, s.Sink, Deliveries(1, 1))
	s.Silence(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	n, err := s.Sink.DeliverBatch(ctx, Deliveries(2, 3))
	require.Zero(t, n)
	require.ErrorIs(t, err, context.DeadlineExceeded, "an unknown outcome")
	require.Less(t, time.Since(began), patience/2)

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	n, err = s.Sink.DeliverBatch(canceled, Deliveries(2, 3))
	require.Zero(t, n)
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err))
}

func awayAtStart(t *testing.T, s Subject) {
	if s.Away == nil {
		t.Log("there is no connection")
		return
	}
	back := s.Away(t)
	n, err := Deliver(t, s.Sink, Deliveries(1, 2))
	require.Zero(t, n)
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err), err)
	require.False(t, outcome.IsUnknown(err), "nothing was sent, so the outcome is known: %v", err)
	require.True(t, s.Vague || processor.IsUnreached(err) || processor.IsRefused(err), "nothing was sent, so it is no word on the record: %v", err)
	back()
	eventually(t, s, Deliveries(1, 2))
	require.Equal(t, s.messages(Deliveries(1, 2)), s.Received(t))
}

func awayInMidRun(t *testing.T, s Subject) {
	if s.Away == nil {
		t.Log("there is no connection")
		return
	}
	eventually(t, s, Deliveries(1, 5))
	back := s.Away(t)
	n, err := Deliver(t, s.Sink, Deliveries(6, 5))
	require.Zero(t, n)
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err), err)
	back()
	eventually(t, s, Deliveries(6, 5))
	requireOrder(t, s.messages(Deliveries(1, 10)), s.Received(t))
}

func tooLarge(t *testing.T, s Subject) {
	if s.TooLarge == 0 {
		t.Log("the receiver has no limit that is known")
		return
	}
	ds := Deliveries(1, 3)
	ds[1].Payload = fmt.Appendf(nil, "%q", strings.Repeat("x", s.TooLarge))
	var n int
	var err error
	for range 3 { // if several are on their way, the receiver may not say which
		var m int
		m, err = Deliver(t, s.Sink, ds[n:])
		n += m
		if processor.IsPermanent(err) {
			break
		}
	}
	require.Equal(t, 1, n)
	require.True(t, processor.IsPermanent(err), err)
	eventually(t, s, ds[2:])
}

// denied: the sink reports that it is refused, at the latest after two attempts, and nothing has arrived. Afterwards
// everything arrives.
func denied(t *testing.T, s Subject) {
	if s.Deny == nil {
		t.Log("the receiver refuses nobody")
		return
	}
	ds := Deliveries(1, 3)
	sink, restore := s.Deny(t)
	if sink == nil {
		sink = s.Sink
	}
	var err error
	for range 2 {
		var n int
		n, err = Deliver(t, sink, ds)
		require.Zero(t, n)
		require.Error(t, err)
		require.False(t, processor.IsPermanent(err) && !processor.IsRefused(err), "a verdict on the record: %v", err)
		if processor.IsRefused(err) {
			break
		}
	}
	require.True(t, processor.IsRefused(err), err)
	require.NotContains(t, err.Error(), "wrong-password")
	require.Empty(t, s.Received(t))
	restore()
	eventually(t, s, ds)
	require.Equal(t, s.messages(ds), s.Received(t))
}

// awkward lists values that a protocol may not be able to carry. Each is delivered, or refused for good. None breaks
// the connection or comes through changed.
func awkward(t *testing.T, s Subject) {
	id := 0
	for name, change := range map[string]func(*processor.Delivery){
		"line breaks":     func(d *processor.Delivery) { d.Key, d.Type = "a\r\nX-Evil: 1", "b\r\nc" },
		"NUL and control": func(d *processor.Delivery) { d.Key, d.Type = "a\x00\x01\x7f", "\x00" },
		"invalid UTF-8":   func(d *processor.Delivery) { d.Key, d.Type = "\xff\xfe", "\xff" },
		"long key":        func(d *processor.Delivery) { d.Key = strings.Repeat("k", 300) },
		"long id":         func(d *processor.Delivery) { d.ID = strings.Repeat("i", 2000) },
		"a header of ours": func(d *processor.Delivery) {
			d.Headers = map[string]string{"ordered-sequence": "9", "Ordered-Epoch": "9"}
		},
		"headers that a broker obeys": func(d *processor.Delivery) {
			d.Headers = map[string]string{"CC": "x", "BCC": "x", "x-delay": "86400000", "Nats-Rollup": "all", "Nats-Msg-Id": "x", "Nats-TTL": "1s",
				"Nats-Expected-Last-Sequence": "7", "googclient_schemaencoding": "JSON", "Host": "evil", "Content-Length": "0", "Authorization": "x",
				"Webhook-Id": "x", "reply-to": "x"}
		},
		"an order to a server":     func(d *processor.Delivery) { d.Type, d.Key = "$JS.API.STREAM.PURGE.BOOKINGS", "_INBOX.x" },
		"a topic of the cluster's": func(d *processor.Delivery) { d.Type, d.Key = "__consumer_offsets", "amq.rabbitmq.reply-to.x" },
		"wildcards":                func(d *processor.Delivery) { d.Type, d.Key = "a.*.>", "#.>" },
		"a path":                   func(d *processor.Delivery) { d.Type, d.Key = "../../admin", "..\\..%2f" },
		"an empty header name":     func(d *processor.Delivery) { d.Headers = map[string]string{"": "x"} },
		"an awkward header":        func(d *processor.Delivery) { d.Headers = map[string]string{"a b:c\r\n": "x\r\ny\x00"} },
		"a long header name":       func(d *processor.Delivery) { d.Headers = map[string]string{strings.Repeat("h", 300): "x"} },
		"large headers":            func(d *processor.Delivery) { d.Headers = map[string]string{"h": strings.Repeat("x", 1<<20)} },
		"no payload":               func(d *processor.Delivery) { d.Payload = nil },
		"no time":                  func(d *processor.Delivery) { d.CreatedAt = time.Time{} },
		"a time before 1970":       func(d *processor.Delivery) { d.CreatedAt = time.Date(-4, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		id++
		d := delivery(id)
		change(&d)
		n, err := Deliver(t, s.Sink, []processor.Delivery{d})
		if err != nil {
			require.True(t, processor.IsPermanent(err), "%s: %v", name, err)
			require.Zero(t, n, name)
		}
	}
	before := len(s.Received(t))
	ds := Deliveries(id+1, 1)
	Delivered(t, s.Sink, ds)
	require.Equal(t, s.messages(ds), s.Received(t)[before:])
}

func empty(t *testing.T, s Subject) {
	Delivered(t, s.Sink, nil)
}

func errorsHidePayload(t *testing.T, s Subject) {
	if s.Away == nil {
		t.Log("nothing fails but the write itself")
		return
	}
	s.Away(t)
	d := delivery(1)
	d.Payload = []byte(`{"card": "4111-CANARY"}`)
	_, err := Deliver(t, s.Sink, []processor.Delivery{d})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "CANARY")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", s.Sink, s.Sink, s.Sink), "secret-password")
}
