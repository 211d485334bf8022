package sinktest

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// of turns deliveries into those of a process and an epoch, numbered from a sequence on.
func of(process string, epoch cursor.Epoch, first int64, ds []processor.Delivery) []processor.Delivery {
	for i := range ds {
		ds[i].Process, ds[i].Epoch, ds[i].Sequence = process, epoch, first+int64(i)
		if process != "sms" { // each cursor has an origin of its own
			ds[i].Origin = "of " + process
		}
	}
	return ds
}

// by returns the subject with another sink.
func (s Subject) by(sink processor.BatchSink) Subject {
	s.Sink = sink
	return s
}

// twoProcesses delivers the same rows to one receiver by two processes: the receiver has each row from both.
func twoProcesses(t *testing.T, s Subject) {
	if s.Another == nil {
		t.Log("the receiver is not shared")
		return
	}
	other := s.by(s.Another(t, "post"))
	for first := range 3 {
		eventually(t, s, Deliveries(2*first+1, 2))
		eventually(t, other, of("post", 3, int64(2*first+1), Deliveries(2*first+1, 2)))
	}
	times := map[Message]int{}
	for _, m := range s.Received(t) {
		times[m]++
	}
	for _, m := range s.messages(Deliveries(1, 6)) {
		require.Equal(t, 2, times[m], "%s, once from each process", m.DedupKey)
	}
}

// emptied: a record that an operator sends again by a seek arrives. So does a record that the next worker sends
// again, since the last worker died before its cursor advanced.
func emptied(t *testing.T, s Subject) {
	if s.Empty == nil {
		t.Log("the receiver cannot be emptied")
		return
	}
	eventually(t, s, Deliveries(1, 5))
	s.Empty(t)
	eventually(t, s, of("sms", 3, 6, Deliveries(1, 5)))
	require.Equal(t, s.messages(Deliveries(1, 5)), s.Received(t), "after a seek")
	if s.Notes || s.Another == nil {
		t.Log("the receiver's notes say that it has them, or there is no other worker")
		return
	}
	s.Empty(t)
	eventually(t, s.by(s.Another(t, "sms")), of("sms", 4, 6, Deliveries(1, 5)))
	require.Equal(t, s.messages(Deliveries(1, 5)), s.Received(t), "by another worker")
}

// idsAgain: a server that was promoted gives ids a second time. With order id the dedup key may be the same, too. The
// number and the row are different.
func idsAgain(t *testing.T, s Subject) {
	eventually(t, s, Deliveries(1, 3))
	again := of("sms", 4, 4, Deliveries(1, 3))
	for i := range again {
		again[i].Payload = fmt.Appendf(nil, `{"another": %d}`, i)
	}
	eventually(t, s, again)
	require.Equal(t, append(s.messages(Deliveries(1, 3)), s.messages(again)...), s.Received(t))
}

// windowRefused: all records that are on their way are refused. Sent again, each arrives once: no answer to the first
// attempt is taken for one to the second.
func windowRefused(t *testing.T, s Subject) {
	if s.Refuse == nil {
		t.Log("the receiver refuses no single record")
		return
	}
	const rounds, each = 3, 10
	var want []processor.Delivery
	for round := range rounds {
		ds := Deliveries(each*round+1, each)
		for i := range ds {
			ds[i].Type = "refused"
		}
		want = append(want, ds...)
		restore := s.Refuse(t, "refused")
		n, err := Deliver(t, s.Sink, ds)
		require.Error(t, err)
		require.Zero(t, n)
		restore()
		eventually(t, s, ds)
	}
	require.Equal(t, s.messages(want), s.Received(t))
}

// promptly bounds the end of a call that should end at once, also on a busy machine.
const promptly = 8 * time.Second

// endsWhileConnecting: a worker that is to stop does not wait for a receiver that takes connections and is silent.
func endsWhileConnecting(t *testing.T, s Subject) {
	if s.Another == nil {
		t.Log("the sink has its receiver from the beginning")
		return
	}
	sink := s.Another(t, "sms")
	s.Silence(t)
	ctx, cancel := context.WithCancel(t.Context())
	canceled := make(chan time.Time, 1)
	time.AfterFunc(100*time.Millisecond, func() {
		canceled <- time.Now()
		cancel()
	})
	n, err := sink.DeliverBatch(ctx, Deliveries(1, 3))
	require.Zero(t, n)
	require.Error(t, err)
	require.False(t, processor.IsPermanent(err), err)
	require.Less(t, time.Since(<-canceled), promptly)
}

// closeAtSilence: a worker that is to stop does not wait for a silent receiver, neither with an idle connection nor
// after a call that had no answer.
func closeAtSilence(t *testing.T, s Subject) {
	closer, ok := s.Sink.(io.Closer)
	if !ok {
		t.Log("the sink has nothing to close")
		return
	}
	eventually(t, s, Deliveries(1, 1))
	s.Silence(t)
	requireSoon(t, closer)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Sink.DeliverBatch(ctx, Deliveries(2, 3))
	require.Error(t, err)
	requireSoon(t, closer)
}

func requireSoon(t *testing.T, closer io.Closer) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- closer.Close() }() // its error does not matter
	select {
	case <-closed:
	case <-time.After(promptly):
		t.Fatal("Close waits for the receiver")
	}
}
