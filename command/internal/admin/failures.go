package admin

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailures is how many logins of one address may fail in failureTime.
	maxFailures = 10
	failureTime = time.Minute
	maxAddress  = 10_000 // addresses that are remembered
)

// failures counts the logins that failed of late, by address. A network of IPv6 that one user has is one address.
type failures struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[netip.Prefix]failing
}

type failing struct {
	count int
	since time.Time
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, of: map[netip.Prefix]failing{}}
}

func prefixOf(address netip.Addr) netip.Prefix {
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // the zero prefix for an address that is not known: all of these count together
	return prefix
}

// full reports whether an address may try no other login now.
func (f *failures) full(client netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current(prefixOf(client)).count >= maxFailures
}

// note counts a failure, and reports whether the log should have it: not if there are too many.
func (f *failures) note(client netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := prefixOf(client)
	now := f.current(p)
	now.count++
	if len(f.of) >= maxAddress {
		f.drop()
	}
	f.of[p] = now
	return now.count <= maxFailures
}

func (f *failures) current(p netip.Prefix) failing {
	now := f.of[p]
	if now.count == 0 || f.now().Sub(now.since) > failureTime {
		return failing{since: f.now()}
	}
	return now
}

// drop forgets what is old, and everything if nothing is.
func (f *failures) drop() {
	for p, failing := range f.of {
		if f.now().Sub(failing.since) > failureTime {
			delete(f.of, p)
		}
	}
	if len(f.of) >= maxAddress {
		clear(f.of)
	}
}
