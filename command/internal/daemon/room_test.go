package daemon

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestRoom_AFloodOfConnectionsClosesNoneThatAsks(t *testing.T) {
	t.Parallel()
	r := newRoom(4, 0)
	probe, idle := &closing{}, &closing{}
	for _, c := range []*closing{probe, idle} {
		r.watch(c, http.StateNew)
		r.watch(c, http.StateActive)
	}
	r.watch(idle, http.StateIdle)
	var flood []*closing
	for range 1000 {
		c := &closing{}
		flood = append(flood, c)
		r.watch(c, http.StateNew)
		require.False(t, c.closed, "the newest may be a probe")
		require.LessOrEqual(t, len(r.entries), 4)
	}
	require.False(t, probe.closed, "it waits for its answer")
	require.True(t, idle.closed)
	require.True(t, flood[0].closed)
	r.watch(flood[0], http.StateActive) // its request came as it was closed
	r.watch(flood[0], http.StateClosed)
	require.Len(t, r.entries, 4)
}

func TestRoom_WhereAllAskTheOldestMakesRoom(t *testing.T) {
	t.Parallel()
	r := newRoom(4, 0)
	var all []*closing
	for range 5 {
		c := &closing{}
		all = append(all, c)
		r.watch(c, http.StateNew)
		r.watch(c, http.StateActive)
	}
	require.True(t, all[0].closed)
	for _, c := range all[1:] {
		require.False(t, c.closed)
	}
	require.Equal(t, 4, r.asking.Len())
	require.Zero(t, r.quiet.Len())
}

func TestRoom_ClientsThatAskAgainAndAgainCloseNoProbe(t *testing.T) {
	t.Parallel()
	r := newRoom(4, 0)
	var greedy []*closing
	again := func() {
		for _, c := range greedy {
			r.watch(c, http.StateIdle)
			r.watch(c, http.StateActive)
		}
	}
	for range 4 {
		c := &closing{}
		greedy = append(greedy, c)
		r.watch(c, http.StateNew)
		r.watch(c, http.StateActive)
	}
	again()
	probe := &closing{}
	r.watch(probe, http.StateNew)
	r.watch(&closing{}, http.StateNew)
	require.False(t, probe.closed, "it was not heard yet")
	r.watch(probe, http.StateActive)
	for range 100 {
		again()
		r.watch(&closing{}, http.StateNew)
		require.False(t, probe.closed, "it waits for its answer")
	}
	require.LessOrEqual(t, len(r.entries), 4)
}

// A flood is faster than a probe that has connected and has still to be heard.
func TestRoom_NoneIsClosedBeforeItHadTheTimeToAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(4, patience)
		probe := &closing{}
		r.watch(probe, http.StateNew)
		began := time.Now()
		for range 3 {
			r.watch(&closing{}, http.StateNew)
		}
		require.Zero(t, time.Since(began), "there is room")
		go func() {
			time.Sleep(patience / 2)
			r.watch(probe, http.StateActive) // it was heard
		}()
		r.watch(&closing{}, http.StateNew)
		require.Equal(t, patience, time.Since(began), "the next one waited")
		require.False(t, probe.closed)
		require.Len(t, r.entries, 4)
	})
}

// The newest have not been heard yet, and others were answered long ago or have asked for long.
func TestRoom_OldOnesMakeRoomAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(4, patience)
		slow := &closing{}
		for _, c := range []*closing{slow, {}, {}} {
			r.watch(c, http.StateNew)
			r.watch(c, http.StateActive)
		}
		time.Sleep(patience)
		began := time.Now()
		probe := &closing{}
		r.watch(probe, http.StateNew)
		r.watch(&closing{}, http.StateNew)
		require.Zero(t, time.Since(began))
		require.True(t, slow.closed)
		require.False(t, probe.closed)
	})
}
