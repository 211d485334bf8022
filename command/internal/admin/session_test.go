package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
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

func from(address string) netip.Addr {
	client, _ := addressOf(requestFrom(address))
	return client
}

func requestFrom(address string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address
	return r
}

func TestLogins_TheClientOfAProxyIsTheLastOneThatItNames(t *testing.T) {
	t.Parallel()
	l, err := newLogins(daemon.Admin{ProxyHeader: "X-User", Proxies: []string{"10.0.0.5", "fd00::/8"}})
	require.NoError(t, err)
	for _, c := range []struct {
		from, want string
		lines      []string
	}{
		{"10.0.0.5:1", "203.0.113.7", []string{"192.0.2.1, 203.0.113.7"}},
		{"10.0.0.5:1", "203.0.113.7", []string{"192.0.2.1", " 203.0.113.7:4711 "}},
		{"10.0.0.5:1", "2001:db8::7", []string{"[2001:db8::7]:4711"}},
		{"[fd00::1]:1", "2001:db8::7", []string{"2001:db8::7"}},
		{"10.0.0.5:1", "203.0.113.7", []string{"::ffff:203.0.113.7"}},
		{"10.0.0.5:1", "10.0.0.5", []string{"203.0.113.7", ""}},
		{"10.0.0.5:1", "10.0.0.5", []string{"203.0.113.7, unknown"}},
		{"10.0.0.5:1", "10.0.0.5", nil},
		{"10.0.0.6:1", "10.0.0.6", []string{"203.0.113.7"}},
	} {
		r := requestFrom(c.from)
		r.Header["X-Forwarded-For"] = c.lines
		require.Equal(t, c.want, l.clientOf(r).String(), c)
	}
}

func TestLogins_WhoDoesNotExistTakesAsLongAsTheSlowestUser(t *testing.T) {
	t.Parallel()
	users := map[string]string{}
	for name, cost := range map[string]int{"ann": 4, "bob": 6, "eve": 5} {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), cost)
		require.NoError(t, err)
		users[name] = string(hash)
	}
	l, err := newLogins(daemon.Admin{Users: users})
	require.NoError(t, err)
	require.Equal(t, users["bob"], string(l.slowest))
	_, ok := l.byPassword("nobody", "bob")
	require.False(t, ok, "the password of the slowest")
}

// All of them see that there is room, and then wait for one of the two places where a hash is computed.
func TestGate_SimultaneousGuessesAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hash, err := bcrypt.GenerateFromPassword([]byte("bobs password"), bcrypt.MinCost)
		require.NoError(t, err)
		l, err := newLogins(daemon.Admin{Users: map[string]string{"bob": string(hash)}})
		require.NoError(t, err)
		g := &gate{config: Config{Logger: slog.New(slog.DiscardHandler)}, logins: l, failures: newFailures(time.Now)}
		l.hashing <- struct{}{}
		l.hashing <- struct{}{}
		const guesses = 100
		answers := make(chan error, guesses)
		for range guesses {
			go func() {
				_, err := g.byPassword(requestFrom("192.0.2.1:1"), "bob", "wrong", "basic")
				answers <- err
			}()
		}
		synctest.Wait()
		<-l.hashing
		<-l.hashing
		compared := 0
		for range guesses {
			if err := <-answers; errors.Is(err, errWrong) {
				compared++
			} else {
				require.ErrorIs(t, err, errTooMany)
			}
		}
		require.GreaterOrEqual(t, compared, maxFailures)
		require.Less(t, compared, maxFailures+maxHashing)
	})
}

func TestGate_WhoIsGoneWaitsForNoPlace(t *testing.T) {
	t.Parallel()
	l, err := newLogins(daemon.Admin{})
	require.NoError(t, err)
	g := &gate{config: Config{Logger: slog.New(slog.DiscardHandler)}, logins: l, failures: newFailures(time.Now)}
	for range maxHashing {
		l.hashing <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.byPassword(requestFrom("192.0.2.1:1").WithContext(ctx), "bob", "wrong", "basic")
	require.ErrorIs(t, err, errGone)
	require.Empty(t, g.failures.of)
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
