package link

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
)

// Side is the side of a link from which data comes.
type Side int

// The sides of a link.
const (
	Client Side = iota // the party that dialled the link
	Server             // its target
)

// Link is a network between clients and one server. It is safe for concurrent use.
type Link struct {
	listener net.Listener

	mu      sync.Mutex
	flowing *sync.Cond
	target  string
	stalled bool
	closed  bool
	conns   map[net.Conn]bool
	cuts    int // how often it was cut: a connection that was being made then ends, too
	onData  func(fromServer bool, data []byte)
	tears   map[Side]chan struct{}
	hold    *hold // at most one
}

// hold is one connection on which nothing from one side passes.
type hold struct {
	from  Side
	match func(data []byte) bool
	after func(data []byte) int // how much of the data that match accepted passes first; nil: nothing
	to    net.Conn              // the destination of the held data; nil until match has found the connection
	found chan struct{}
}

// Listen starts a link to the host:port of target, on a port of 127.0.0.1. The caller closes it.
func Listen(target string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a link to %s: %w", target, err)
	}
	l := &Link{listener: listener, target: target, conns: map[net.Conn]bool{}, tears: map[Side]chan struct{}{}}
	l.flowing = sync.NewCond(&l.mu)
	go l.accept()
	return l, nil
}

// Addr returns the host:port at which clients reach the target.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Retarget leads new connections to another target. Existing ones stay: see Cut.
func (l *Link) Retarget(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

// nowhere is an address without a listener.
const nowhere = "127.0.0.1:1"

// Away takes the target off the network until the returned function is called: connections end, new ones are refused.
func (l *Link) Away() (back func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target := l.target
	l.target = nowhere
	l.cut()
	return func() { l.Retarget(target) }
}

// Stall stops all data, in both directions, and closes no connection, as if the cable were pulled.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = true
}

// Resume passes on the stalled data, and cancels a tear that has not happened yet.
func (l *Link) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = false
	clear(l.tears)
	l.flowing.Broadcast()
}

// Release passes on the data that a Hold kept, and cancels a Hold that has found no connection. Resume does neither:
// a link may be stalled during a Hold.
func (l *Link) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = nil
	l.flowing.Broadcast()
}

// Cut closes all connections and returns how many there were. Clients may make new ones.
func (l *Link) Cut() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut()
}

func (l *Link) cut() int {
	l.cuts++
	n := len(l.conns) / 2
	for conn := range l.conns {
		_ = conn.Close()
		delete(l.conns, conn)
	}
	l.flowing.Broadcast()
	return n
}

// Tear passes only the first half of the next piece of data from one side, and then closes its connection. The
// channel is closed when that has happened.
func (l *Link) Tear(from Side) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	torn := make(chan struct{})
	l.tears[from] = torn
	return torn
}

// Hold stalls one connection in one direction. It takes the connection on which the client next sends data that match
// accepts. From then on nothing from the side from passes on it. The channel is closed when the connection is found.
// All other connections go on, and so does its other direction.
func (l *Link) Hold(from Side, match func(data []byte) bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = &hold{from: from, match: match, found: make(chan struct{})}
	return l.hold.found
}

// HoldAt is Hold for data of the client. The data must contain text and all of the others; it passes up to text. The
// server sees a client whose network, or host, died in the middle of a message.
func (l *Link) HoldAt(text string, others ...string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := func(data []byte) int { return bytes.Index(data, []byte(text)) }
	match := func(data []byte) bool {
		return at(data) >= 0 && !slices.ContainsFunc(others, func(other string) bool { return !bytes.Contains(data, []byte(other)) })
	}
	l.hold = &hold{from: Client, match: match, after: at, found: make(chan struct{})}
	return l.hold.found
}

// OnData calls f with each piece of data before it is passed on. f may stall or cut the link: then this piece is held
// up or lost.
func (l *Link) OnData(f func(fromServer bool, data []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onData = f
}

// Close ends the link and its connections.
func (l *Link) Close() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.cut()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go l.connect(client)
	}
}

// connect closes the client's connection if the target does not listen.
func (l *Link) connect(client net.Conn) {
	l.mu.Lock()
	target, cuts := l.target, l.cuts
	l.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	l.mu.Lock()
	l.conns[client], l.conns[server] = true, true
	late := l.closed || l.cuts != cuts
	l.mu.Unlock()
	if late {
		l.forget(client, server)
		return
	}
	go l.pump(client, server, Client)
	go l.pump(server, client, Server)
}

// pump passes data on until either side closes.
func (l *Link) pump(from, to net.Conn, side Side) {
	defer l.forget(from, to)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		first := l.find(from, to, side, buffer[:n])
		if _, err := to.Write(buffer[:first]); err != nil {
			return
		}
		more, whole := l.pass(to, side, buffer[first:n])
		if _, err := to.Write(buffer[first : first+more]); err != nil || !whole {
			return
		}
	}
}

func (l *Link) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(l.conns, conn)
	}
}

// find checks whether a connection is the one to hold, and returns how much of the data passes before that.
func (l *Link) find(from, to net.Conn, side Side, data []byte) (first int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hold
	if h == nil || h.to != nil || side != Client || !h.match(data) {
		return 0
	}
	if h.after != nil {
		first = h.after(data)
	}
	if h.to = to; h.from == Server {
		h.to = from
	}
	close(h.found)
	return first
}

func (l *Link) holds(to net.Conn, side Side) bool {
	return l.hold != nil && l.hold.to == to && l.hold.from == side
}

// pass waits while the link is stalled, and returns how much of the data may pass. The connection ends unless all
// does.
func (l *Link) pass(to net.Conn, side Side, data []byte) (n int, whole bool) {
	l.mu.Lock()
	watch := l.onData
	l.mu.Unlock()
	if watch != nil {
		watch(side == Server, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.conns[to] && (l.stalled || l.holds(to, side)) {
		l.flowing.Wait()
	}
	if !l.conns[to] {
		return 0, false
	}
	if torn, ok := l.tears[side]; ok {
		delete(l.tears, side)
		close(torn)
		return len(data) / 2, false
	}
	return len(data), true
}
