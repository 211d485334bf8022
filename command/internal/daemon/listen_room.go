package daemon

import (
	"container/list"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// room bounds the connections of a server, and always has room for one more. To make room it closes the oldest
// connection that asks nothing. If most of them ask, it closes one that has had an answer before: its client connects
// again. Only if all wait for their first answer does it close the oldest of all. So a probe that has asked and waits
// for its answer is not kept away by connections that are held open, by a flood of new ones, or by clients that ask
// without a pause.
//
// A connection that was never answered is not closed before it has had time for it (patience). Until then the next
// one waits in the kernel: a flood fills the room faster than a probe beside it can send its request.
type room struct {
	limit    int
	patience time.Duration

	mu      sync.Mutex
	quiet   *list.List // of net.Conn that have not asked yet, the oldest first
	idle    *list.List // of those that were answered
	asking  *list.List // of those whose first request has begun
	again   *list.List // of those whose further request has begun
	entries map[net.Conn]entry
}

// entry is a connection in one of the lists.
type entry struct {
	in   *list.List
	at   *list.Element
	came time.Time
}

func newRoom(limit int, patience time.Duration) *room {
	return &room{limit: limit, patience: patience, quiet: list.New(), idle: list.New(), asking: list.New(), again: list.New(), entries: map[net.Conn]entry{}}
}

// watch is a server's ConnState. For a new connection it returns when there is room for the next one.
func (r *room) watch(c net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch state {
	case http.StateNew:
		r.enter(c, r.quiet, time.Now())
		for len(r.entries) > r.limit {
			r.evict()
		}
	case http.StateActive:
		if r.entries[c].in == r.idle {
			r.move(c, r.again)
		} else {
			r.move(c, r.asking)
		}
	case http.StateIdle:
		r.move(c, r.idle)
	case http.StateClosed, http.StateHijacked:
		r.leave(c)
	}
}

// evict closes one connection that is not the newest, or waits until it may.
func (r *room) evict() {
	oldest, early := r.least()
	if early > 0 {
		r.mu.Unlock()
		time.Sleep(early)
		r.mu.Lock()
		return
	}
	r.leave(oldest)
	_ = oldest.Close()
}

// least returns the connection that can be closed with the least harm, and how long it must still stay open.
func (r *room) least() (oldest net.Conn, early time.Duration) {
	const newest = 1
	early = math.MaxInt64
	for _, from := range []struct {
		all  *list.List
		keep int // how many of them stay open at this step
	}{
		{r.idle, 0},
		{r.quiet, max(newest, r.limit/2)},
		{r.again, 0}, // a probe that was not heard yet may be among the few quiet ones
		{r.quiet, newest},
		{r.asking, 0},
	} {
		if from.all.Len() <= from.keep {
			continue
		}
		c := from.all.Front().Value.(net.Conn)
		wait := r.patience - time.Since(r.entries[c].came)
		if wait <= 0 || from.all == r.idle {
			return c, 0
		}
		early = min(early, wait)
	}
	return nil, early
}

func (r *room) enter(c net.Conn, in *list.List, came time.Time) {
	r.entries[c] = entry{in, in.PushBack(c), came}
}

// move changes the list of a connection that is still in the room.
func (r *room) move(c net.Conn, to *list.List) {
	if e, ok := r.entries[c]; ok {
		r.leave(c)
		r.enter(c, to, e.came)
	}
}

func (r *room) leave(c net.Conn) {
	if e, ok := r.entries[c]; ok {
		e.in.Remove(e.at)
		delete(r.entries, c)
	}
}
