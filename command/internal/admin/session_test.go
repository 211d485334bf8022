package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is one that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func requestWith(cookie string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Cookie", sessionCookie+"="+cookie)
	return r
}

func TestSessions_EndByTimeByNumberAndWithTheDaemon(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	ctx, stop := context.WithCancel(t.Context())
	all := newSessions(ctx, time.Hour, c.now)
	first, cookie := all.begin(login{name: "alice"})
	require.Same(t, first, all.find(requestWith(cookie)))
	require.Nil(t, all.find(requestWith(cookie+"x")))

	c.at = c.at.Add(time.Minute)
	var last *session
	for range maxOfOne {
		last, _ = all.begin(login{name: "alice"})
	}
	require.Nil(t, all.find(requestWith(cookie)), "one login has so many sessions at most, and the oldest ends")
	<-first.ended
	require.Len(t, all.all, maxOfOne)

	c.at = c.at.Add(time.Hour)
	bob, cookie := all.begin(login{name: "bob"})
	require.Len(t, all.all, 1, "the others' time is over")
	<-last.ended
	for i := range maxSessions {
		all.begin(login{name: string(rune('A' + i))})
	}
	require.Len(t, all.all, maxSessions)
	require.NotNil(t, bob)
	stop()
	require.Eventually(t, func() bool { return all.find(requestWith(cookie)) == nil }, time.Minute, time.Millisecond)
}

func TestSessions_ATimerEndsThem(t *testing.T) {
	t.Parallel()
	all := newSessions(t.Context(), 50*time.Millisecond, time.Now)
	s, _ := all.begin(login{name: "alice"})
	<-s.ended
}

func from(address string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address
	return r
}

func TestFailures_AreCountedByAddressForAWhile(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	f := newFailures(c.now)
	for range maxFailures {
		require.False(t, f.full(from("192.0.2.1:1")))
		f.note(from("192.0.2.1:2"))
	}
	require.True(t, f.full(from("192.0.2.1:3")))
	require.True(t, f.full(from("[::ffff:192.0.2.1]:3")), "the same address")
	require.False(t, f.full(from("192.0.2.2:3")))
	require.False(t, f.note(from("192.0.2.1:3")), "the log has enough of them")
	c.at = c.at.Add(failureTime + time.Second)
	require.False(t, f.full(from("192.0.2.1:3")))

	for i := range maxFailures {
		f.note(from("[2001:db8::" + string(rune('1'+i%9)) + "]:1"))
	}
	require.True(t, f.full(from("[2001:db8::ffff]:1")), "one network is one user's")
	for i := range 3 * maxAddress {
		f.note(from("10." + octet(i>>16) + "." + octet(i>>8) + "." + octet(i) + ":1"))
	}
	require.LessOrEqual(t, len(f.of), maxAddress)
}

func octet(i int) string { return strconv.Itoa(i & 255) }
