package pgtest

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Link is a network between a test and a server, to be broken at will.
type Link struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	flowing *sync.Cond
	stalled bool
	closed  bool
	conns   map[net.Conn]bool
	onData  func(fromServer bool, data []byte)
}

// Proxy puts a link in front of the server at address and returns the address to reach it by.
func Proxy(t testing.TB, address string) (string, *Link) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("put a proxy before a server: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("put a proxy before a server: %v", err)
	}
	link := &Link{listener: listener, target: u.Host, conns: map[net.Conn]bool{}}
	link.flowing = sync.NewCond(&link.mu)
	t.Cleanup(link.close)
	go link.accept()
	u.Host = listener.Addr().String()
	return u.String(), link
}

// Stall lets nothing through, either way, and closes nothing: a cable that is pulled.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = true
}

// Resume lets through what was held up.
func (l *Link) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = false
	l.flowing.Broadcast()
}

// Cut closes all connections; new ones may be made.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
}

func (l *Link) cut() {
	for conn := range l.conns {
		_ = conn.Close()
		delete(l.conns, conn)
	}
	l.flowing.Broadcast()
}

// OnData calls f with each piece of data before it is passed on. f may Stall or cut the link: what it was called with
// is then held up or lost.
func (l *Link) OnData(f func(fromServer bool, data []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onData = f
}

func (l *Link) close() {
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
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns[client], l.conns[server] = true, true
		if l.closed {
			l.cut()
		}
		l.mu.Unlock()
		go l.pump(client, server, false)
		go l.pump(server, client, true)
	}
}

// pump passes data on until either side closes.
func (l *Link) pump(from, to net.Conn, fromServer bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !l.pass(to, fromServer, buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// pass waits while the link is stalled, and reports whether the connection is still there.
func (l *Link) pass(to net.Conn, fromServer bool, data []byte) bool {
	l.mu.Lock()
	watch := l.onData
	l.mu.Unlock()
	if watch != nil {
		watch(fromServer, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.stalled && l.conns[to] {
		l.flowing.Wait()
	}
	return l.conns[to]
}
