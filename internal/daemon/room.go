package daemon

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// room bounds the connections of a server, and always has room for one more. The oldest one that asks nothing is closed for
// it. Where most of them ask, one that has had an answer before is closed: its client connects again. Only if all wait for
// their first answer, the oldest of all is. So neither connections that are held open, nor a flood of new ones, nor clients
// that ask without a pause keep a probe away that has asked and waits for its answer.
type room struct {
	limit int

	mu      sync.Mutex
	quiet   *list.List // of net.Conn that have asked nothing yet, the oldest first
	idle    *list.List // of those that were answered
	asking  *list.List // of those whose first request has begun
	again   *list.List // of those whose further request has begun
	entries map[net.Conn]entry
}

// entry is a connection in one of the lists.
type entry struct {
	in *list.List
	at *list.Element
}

func newRoom(limit int) *room {
	return &room{limit: limit, quiet: list.New(), idle: list.New(), asking: list.New(), again: list.New(), entries: map[net.Conn]entry{}}
}

// watch is a server's ConnState.
func (r *room) watch(c net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch state {
	case http.StateNew:
		r.enter(c, r.quiet)
		if len(r.entries) > r.limit {
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

// evict closes one that is not the newest.
func (r *room) evict() {
	from := r.least()
	oldest := from.Front().Value.(net.Conn)
	r.leave(oldest)
	_ = oldest.Close()
}

// least are those of whom one can be closed with the least harm.
func (r *room) least() *list.List {
	const newest = 1
	switch {
	case r.idle.Len() > 0:
		return r.idle
	case r.quiet.Len() > max(newest, r.limit/2):
		return r.quiet
	case r.again.Len() > 0: // a probe that was not heard yet may be among the few quiet ones
		return r.again
	case r.quiet.Len() > newest:
		return r.quiet
	default:
		return r.asking
	}
}

func (r *room) enter(c net.Conn, in *list.List) { r.entries[c] = entry{in, in.PushBack(c)} }

// move changes the list of a connection that is still in the room.
func (r *room) move(c net.Conn, to *list.List) {
	if _, ok := r.entries[c]; ok {
		r.leave(c)
		r.enter(c, to)
	}
}

func (r *room) leave(c net.Conn) {
	if e, ok := r.entries[c]; ok {
		e.in.Remove(e.at)
		delete(r.entries, c)
	}
}
