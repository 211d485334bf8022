package pgtest

import (
	"net/url"
	"testing"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
)

// Link is a network between a test and a server, which the test can break.
type Link = link.Link

// Proxy puts a link in front of the server at address and returns the address of the link.
func Proxy(t testing.TB, address string) (string, *Link) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("put a proxy before a server: %v", err)
	}
	l, err := link.Listen(u.Host)
	if err != nil {
		t.Fatalf("put a proxy before a server: %v", err)
	}
	t.Cleanup(l.Close)
	u.Host = l.Addr()
	return u.String(), l
}
