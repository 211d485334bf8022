package daemon

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// room bounds the connections of a server, and always has room for one more: the oldest one is closed for it. So whoever
// holds all of them open keeps no probe away: one that asks and hears within a moment is never the oldest.
type room struct {
	limit int

	mu      sync.Mutex
	open    *list.List // of net.Conn, the oldest first
	entries map[net.Conn]*list.Element
}

func newRoom(limit int) *room {
	return &room{limit: limit, open: list.New(), entries: map[net.Conn]*list.Element{}}
}

// watch is a server's ConnState.
func (r *room) watch(c net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch state {
	case http.StateNew:
		r.entries[c] = r.open.PushBack(c)
		if r.open.Len() > r.limit {
			oldest := r.open.Front().Value.(net.Conn)
			r.leave(oldest)
			_ = oldest.Close()
		}
	case http.StateClosed, http.StateHijacked:
		r.leave(c)
	}
}

func (r *room) leave(c net.Conn) {
	if entry, ok := r.entries[c]; ok {
		r.open.Remove(entry)
		delete(r.entries, c)
	}
}
