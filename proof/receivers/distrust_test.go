package receivers

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// faults are what a signature is for. Each changes a request on its way to the receiver.
var faults = []struct {
	name   string
	change func(t *testing.T, p post) post
}{
	{"a wrong secret", func(t *testing.T, p post) post {
		return p.signedBy(t, "whsec_b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyMDE=", time.Now())
	}},
	{"a clock that is behind", func(t *testing.T, p post) post { return p.signedBy(t, secret, time.Now().Add(-10*time.Minute)) }},
	{"a clock that is ahead", func(t *testing.T, p post) post { return p.signedBy(t, secret, time.Now().Add(10*time.Minute)) }},
	{"a body that was changed", func(_ *testing.T, p post) post {
		return post{p.header, bytes.Replace(p.body, []byte(`"blue"`), []byte(`"suite"`), 1)}
	}},
}

// The receiver applies nothing that it cannot trust, and the operator reads why. Once the fault is gone and the
// process is retried, every booking is made, once and in order. No booking becomes a dead letter, although the process
// puts poison aside.
func TestLive_WhatAReceiverCannotTrustHaltsAndNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, programs := range receivers {
		if len(programs) > 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.receive(programs[0](t))
			w.start()
			for i, fault := range faults {
				w.bookUnder(fault.name, func(p post) post { return fault.change(t, p) })
				require.Equal(t, w.text(wantSQL), w.text(gotSQL), fault.name)
				require.EqualValues(t, 4*(i+1), w.number("SELECT count(*) FROM public.booking"), fault.name)
			}
			require.Zero(t, w.number("SELECT count(*) FROM public.dead_letter"))
			w.kill()
		})
	}
}

// bookUnder makes two bookings before a fault begins, and two while it lasts.
func (w *world) bookUnder(fault string, change func(post) post) {
	w.t.Helper()
	made := func() bool { return w.number(waitingSQL) == 0 }
	require.NoError(w.t, w.book(w.t.Context(), nil, "blue", "blue"))
	w.await("the bookings before "+fault, made)
	before := w.text(stateSQL)

	w.wire.distort(change)
	require.NoError(w.t, w.book(w.t.Context(), nil, "blue", "blue"))
	w.await("a halt over "+fault, func() bool { return w.number("SELECT count(*) FROM public.cursor WHERE state = 'halted'") == 1 })
	require.Equal(w.t, before, w.text(stateSQL), "%s: nothing was applied, and nothing noted", fault)
	_, err := w.command("status", "bookings")
	require.ErrorContains(w.t, err, "401 Unauthorized", "status ends with an error while a process is halted")
	require.ErrorContains(w.t, err, "the signature is missing, wrong, or too far from the clock")
	require.ErrorContains(w.t, err, "correct the credentials or the secret")

	w.wire.distort(nil)
	require.NoError(w.t, w.operate("retry", "bookings"))
	w.await("the bookings after "+fault, made)
}
