package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
)

const (
	defaultSession = 12 * time.Hour
	maxSessions    = 1000
	maxOfOne       = 20 // sessions of one login
	sessionCookie  = "od-session"
	// hostPrefix makes a browser keep the cookie to this very host, and to TLS.
	hostPrefix = "__Host-"
)

// session is a login on the page.
type session struct {
	digest  [sha256.Size]byte // of the cookie
	name    string
	operate bool
	began   time.Time
	expires time.Time
	ended   chan struct{}
}

// sessions are those that have not ended, by the digest of their cookies.
type sessions struct {
	length time.Duration
	now    func() time.Time

	mu  sync.Mutex
	all map[[sha256.Size]byte]*session
}

func newSessions(ctx context.Context, length time.Duration, now func() time.Time) *sessions {
	s := &sessions{length: length, now: now, all: map[[sha256.Size]byte]*session{}}
	context.AfterFunc(ctx, s.endAll)
	return s
}

// begin returns a new session, and the text of its cookie.
func (s *sessions) begin(l login) (*session, string) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: see crypto/rand
	text := base64.RawURLEncoding.EncodeToString(secret[:])
	now := s.now()
	made := &session{digest: sha256.Sum256([]byte(text)), name: l.name, operate: l.operate, began: now, expires: now.Add(s.length), ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	s.makeRoom(l.name)
	s.all[made.digest] = made
	time.AfterFunc(s.length, func() { s.end(made) })
	return made, text
}

// makeRoom ends the oldest session of a login that has many, or else the oldest of all if there are many.
func (s *sessions) makeRoom(name string) {
	var oldest, oldestOfOne *session
	count := 0
	for _, one := range s.all {
		if oldest == nil || one.began.Before(oldest.began) {
			oldest = one
		}
		if one.name != name {
			continue
		}
		count++
		if oldestOfOne == nil || one.began.Before(oldestOfOne.began) {
			oldestOfOne = one
		}
	}
	switch {
	case count >= maxOfOne:
		s.drop(oldestOfOne)
	case len(s.all) >= maxSessions:
		s.drop(oldest)
	}
}

// drop ends a session. The caller has mu.
func (s *sessions) drop(one *session) {
	if s.all[one.digest] == one {
		delete(s.all, one.digest)
		close(one.ended)
	}
}

func (s *sessions) end(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(one)
}

func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		s.drop(one)
	}
}

// expire ends the sessions whose time is over. The caller has mu.
func (s *sessions) expire() {
	for _, one := range s.all {
		if !s.now().Before(one.expires) {
			s.drop(one)
		}
	}
}

// find returns the session of a request; nil if it has none. The cookie is looked up by its digest, so the time shows
// nothing of it.
func (s *sessions) find(r *http.Request) *session {
	for _, name := range []string{hostPrefix + sessionCookie, sessionCookie} {
		cookie, err := r.Cookie(name)
		if err != nil {
			continue
		}
		s.mu.Lock()
		s.expire()
		one := s.all[sha256.Sum256([]byte(cookie.Value))]
		s.mu.Unlock()
		if one != nil {
			return one
		}
	}
	return nil
}

// secure reports whether a browser reaches the daemon by TLS, as far as a proxy that the file lists says so.
func (g *gate) secure(r *http.Request) bool {
	return r.TLS != nil || g.logins.isProxy(r) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookie is one of ours.
func (g *gate) cookie(r *http.Request, name, value string, length time.Duration) *http.Cookie {
	secure := g.secure(r)
	if secure {
		name = hostPrefix + name
	}
	c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode, MaxAge: int(length.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// logIn begins a session for the token, or the user and password, of the form.
func (g *gate) logIn(w http.ResponseWriter, r *http.Request, v visitor.Visitor) {
	if !g.sincere(w, r, login{by: bySession}, v) {
		return
	}
	l, err := g.byForm(r)
	if err != nil {
		status := http.StatusUnauthorized
		if errors.Is(err, errTooMany) {
			status = http.StatusTooManyRequests
			w.Header().Set("Retry-After", "60")
		}
		v.LoginFailed = err.Error()
		g.loginPage(w, r, v, status)
		return
	}
	if former := g.sessions.find(r); former != nil {
		g.sessions.end(former)
	}
	made, text := g.sessions.begin(l)
	http.SetCookie(w, g.cookie(r, sessionCookie, text, made.expires.Sub(g.config.now())))
	g.config.Logger.Info("a login on the page of the console", "name", l.name, "operate", l.operate)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// byForm finds the login of a form.
func (g *gate) byForm(r *http.Request) (login, error) {
	const how = "the page"
	if user := r.PostForm.Get("user"); user != "" && strings.TrimSpace(r.PostForm.Get("token")) == "" {
		return g.byPassword(r, user, r.PostForm.Get("password"), how)
	}
	return g.byToken(r, strings.TrimSpace(r.PostForm.Get("token")), how)
}

// logOut ends the session.
func (g *gate) logOut(w http.ResponseWriter, r *http.Request) {
	if s := g.sessions.find(r); s != nil {
		g.sessions.end(s)
	}
	http.SetCookie(w, g.cookie(r, sessionCookie, "", 0))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
