package daemon

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// room bounds the connections of a server, and always has room for one more. The oldest one that asks nothing is closed for
// it, and only if all of them ask, the oldest of all. So neither connections that are held open nor a flood of new ones
// keep a probe away that has asked and waits for its answer.
type room struct {
	limit int

	mu      sync.Mutex
	quiet   *list.List // of net.Conn that ask nothing, the oldest first
	asking  *list.List // of those whose request has begun
	entries map[net.Conn]entry
}

// entry is a connection in one of the lists.
type entry struct {
	in *list.List
	at *list.Element
}

func newRoom(limit int) *room {
	return &room{limit: limit, quiet: list.New(), asking: list.New(), entries: map[net.Conn]entry{}}
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
		r.move(c, r.asking)
	case http.StateIdle:
		r.move(c, r.quiet)
	case http.StateClosed, http.StateHijacked:
		r.leave(c)
	}
}

// evict closes one that is not the newest.
func (r *room) evict() {
	from := r.quiet
	if from.Len() == 1 { // the newest alone
		from = r.asking
	}
	oldest := from.Front().Value.(net.Conn)
	r.leave(oldest)
	_ = oldest.Close()
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
