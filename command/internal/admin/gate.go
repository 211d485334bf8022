package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// Config describes a gate.
type Config struct {
	// Settings are those of the file.
	Settings daemon.Admin
	// Loopback reports that only this machine can reach the listener.
	Loopback bool
	// Desk and Pages are what is behind the gate. Required.
	Desk  *desk.Desk
	Pages http.Handler
	// Logger is required.
	Logger *slog.Logger

	now func() time.Time // nil: time.Now. Tests have another clock
}

const (
	maxBody    = 64 << 10
	maxStreams = 100
	// maxWatching bounds the streams of those who may only look: operators find a place in any case.
	maxWatching = 80
	// maxURL bounds the path and the query: what is long is record data, or an attack.
	maxURL = 2 << 10
)

// gate is what every request passes.
type gate struct {
	config   Config
	hosts    []string
	logins   *logins
	sessions *sessions
	failures *failures // passwords that were wrong
	strays   *failures // tokens that were wrong: they bound the log alone
	csrf     csrf
	api      http.Handler
	streams  chan struct{} // has an element for each stream that is open
	watching chan struct{} // and for each of those who may only look
	ctx      context.Context
	cross    *http.CrossOriginProtection
}

// New makes the handler of a listener. Its sessions end with ctx.
func New(ctx context.Context, c Config) (http.Handler, error) {
	if c.now == nil {
		c.now = time.Now
	}
	logins, err := newLogins(c.Settings)
	if err != nil {
		return nil, err
	}
	g := &gate{
		config: c, hosts: c.Settings.Hosts, logins: logins, sessions: newSessions(ctx, cmp.Or(c.Settings.Session, defaultSession), c.now), failures: newFailures(c.now), strays: newFailures(c.now),
		streams: make(chan struct{}, maxStreams), watching: make(chan struct{}, maxWatching), ctx: ctx, cross: http.NewCrossOriginProtection(),
	}
	if _, err := rand.Read(g.csrf.key[:]); err != nil {
		return nil, fmt.Errorf("make the key of the pages: %w", err)
	}
	g.api = newAPI(c.Desk, c.Logger)
	return g, nil
}

// ServeHTTP is called by the server.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if status, text := g.wellFormed(r); status != 0 {
		g.refuse(w, r, status, kindUsage, text)
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		g.refuse(w, r, http.StatusRequestEntityTooLarge, kindUsage, "the body is too large, or did not come in time")
		return
	}
	if !storable(r, body) {
		g.refuse(w, r, http.StatusBadRequest, kindUsage, "the request has a zero byte, or text that is not UTF-8: the database has no such text")
		return
	}
	login, err := g.login(r)
	if err != nil {
		g.deny(w, r, err)
		return
	}
	v := g.visitor(w, r, login)
	r = r.WithContext(visitor.With(r.Context(), v))
	if v.Operate {
		r = r.WithContext(desk.ByOperator(r.Context()))
	}
	switch open := isOpen(r); {
	case r.URL.Path == "/login" && r.Method == http.MethodPost:
		g.logIn(w, r, v)
	case !open && !v.Read:
		g.unknown(w, r, v)
	case isStream(r) && r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		g.refuse(w, r, http.StatusMethodNotAllowed, kindUsage, "this goes on for as long as somebody looks: read it with GET")
	case r.Method == http.MethodPost && !g.sincere(w, r, login, v):
	case r.URL.Path == "/logout" && r.Method == http.MethodPost:
		g.logOut(w, r)
	case needsOperate(r) && !v.Operate:
		g.refuse(w, r, http.StatusForbidden, kindForbidden, "you may look, and not decide: log in as somebody who may operate")
	case isStream(r):
		g.streamed(w, r, g.behind)
	default:
		patient(w, r)
		g.behind(w, r)
	}
}

// behind serves a request that the gate let through.
func (g *gate) behind(w http.ResponseWriter, r *http.Request) {
	if isAPI(r) {
		g.api.ServeHTTP(w, r)
		return
	}
	g.config.Pages.ServeHTTP(w, r)
}

// readBody reads the whole body, within the deadline of the server for it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	r.Body = io.NopCloser(bytes.NewReader(text))
	return text, err
}

// How long an answer may take: a question waits for its turn and for the database, and a decision for a worker and for a
// receiver.
const (
	questionTime = 45 * time.Second
	decisionTime = 6 * time.Minute
)

// patient replaces the deadlines of the server, which are those of metrics.
func patient(w http.ResponseWriter, r *http.Request) {
	within := questionTime
	if needsOperate(r) || r.URL.Path == "/doctor" || r.URL.Path == "/api/v1/doctor" {
		within = decisionTime
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // what cannot do this has no deadline
	_ = control.SetWriteDeadline(time.Now().Add(within))
}

// protect sets the headers of every answer. A page that needs more than this is refused by the browser.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// wellFormed returns what is wrong with a request, whoever sends it; 0 if nothing is.
func (g *gate) wellFormed(r *http.Request) (status int, text string) {
	switch {
	case !g.ownHost(r.Host):
		return http.StatusMisdirectedRequest, "this name is not one of the daemon's: use its IP address or localhost, or add the name to admin.hosts in its file"
	case !isPlain(r):
		return http.StatusNotFound, "there is nothing here"
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method):
		return http.StatusMethodNotAllowed, "only GET, HEAD and POST are known here"
	case len(r.URL.Path)+len(r.URL.RawQuery) > maxURL:
		return http.StatusRequestURITooLong, "the URL is too long"
	case r.Method == http.MethodPost && r.ContentLength > maxBody:
		return http.StatusRequestEntityTooLarge, "the body is too large"
	case r.Method != http.MethodPost && foreign(r):
		return http.StatusForbidden, "another site must not load this"
	default:
		return 0, ""
	}
}

// foreign reports whether a page of another site loads something of ours. A link to us is no such thing.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// ownHost reports whether a name is one of the daemon's. A web page may have pointed any other name at this address, to
// read what the browser's machine may read (DNS rebinding).
func (g *gate) ownHost(hostport string) bool {
	host := hostOf(hostport)
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(g.hosts, func(own string) bool { return strings.EqualFold(own, host) })
}

// hostOf is the name or the address of a Host header, without the port.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// isPlain reports whether a path is spelled in the only way. Then no two parts of the program read it in two ways.
func isPlain(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	return path.Clean(escaped) == escaped && !needless.MatchString(escaped)
}

// needless is the escape of a letter, a digit or a mark that a path may have as it is (RFC 3986, section 2.3).
var needless = regexp.MustCompile(`%(?i:4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|3[0-9]|2d|2e|5f|7e)`)

// isOpen reports whether everybody may have an answer: the form to log in, and what the page of it is made of.
func isOpen(r *http.Request) bool {
	return r.URL.Path == "/login" || r.URL.Path == "/logout" || strings.HasPrefix(r.URL.Path, "/assets/")
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// lookingPosts are the POSTs that only ask: what they ask for is record data, which no URL may have.
var lookingPosts = []string{"/find", "/letters", "/api/v1/find", "/api/v1/tail", "/api/v1/dead-letters"}

// needsOperate reports whether a request decides something. Every POST does, unless it is known to only ask.
func needsOperate(r *http.Request) bool {
	return r.Method == http.MethodPost && !slices.Contains(lookingPosts, r.URL.Path)
}

// visitor is what pages may know of who sends a request.
func (g *gate) visitor(w http.ResponseWriter, r *http.Request, l login) visitor.Visitor {
	s := g.config.Settings
	v := visitor.Visitor{
		Name: l.name, Read: l.read, Operate: l.operate, Session: l.session != nil,
		Logins: len(s.ReadTokens)+len(s.OperateTokens)+len(s.Users) > 0, Passwords: len(s.Users) > 0,
	}
	switch cmp.Or(s.Payloads, "operate") {
	case "operate":
		v.Payloads = l.operate
	case "read":
		v.Payloads = l.read
	}
	if l.session != nil {
		v.Ends = l.session.ended
	}
	v.CSRF = g.csrf.token(g.binding(w, r, l))
	return v
}

// unknown answers a request of somebody who may not even look.
func (g *gate) unknown(w http.ResponseWriter, r *http.Request, v visitor.Visitor) {
	text := "log in first"
	if !g.config.Settings.Logins() {
		text = "others can reach this address, so it needs a login, and the daemon's file has none: see admin in docs/configuration.md"
	}
	if isAPI(r) || r.Method == http.MethodPost || !v.Logins {
		g.challenge(w.Header())
		g.refuse(w, r, http.StatusUnauthorized, kindLogin, text)
		return
	}
	g.loginPage(w, r, v, http.StatusUnauthorized)
}

// challenge names the ways to log in, for programs.
func (g *gate) challenge(h http.Header) {
	h.Add("WWW-Authenticate", `Bearer realm="ordered-dispatcher"`)
	if len(g.config.Settings.Users) > 0 {
		h.Add("WWW-Authenticate", `Basic realm="ordered-dispatcher", charset="UTF-8"`)
	}
}

// loginPage answers with the form to log in, whatever the path is.
func (g *gate) loginPage(w http.ResponseWriter, r *http.Request, v visitor.Visitor, status int) {
	page := r.Clone(visitor.With(r.Context(), v))
	page.Method, page.Body, page.ContentLength = http.MethodGet, http.NoBody, 0
	page.URL.Path, page.URL.RawPath, page.URL.RawQuery = "/login", "", ""
	g.config.Pages.ServeHTTP(&statusWriter{ResponseWriter: w, status: status}, page)
}

// statusWriter answers with another status than the page does.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *statusWriter) WriteHeader(status int) {
	if !w.wrote && status == http.StatusOK {
		status = w.status
	}
	w.wrote = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// deny answers a login that failed.
func (g *gate) deny(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusUnauthorized
	if errors.Is(err, errTooMany) {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "60")
	} else {
		g.challenge(w.Header())
	}
	g.refuse(w, r, status, kindLogin, err.Error())
}

// refuse answers without having done anything.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, status int, kind, text string) {
	if isAPI(r) {
		writeError(w, status, kind, text)
		return
	}
	if pages, ok := g.config.Pages.(faults); ok {
		pages.Fault(w, r, status, text)
		return
	}
	http.Error(w, text, status)
}

// faults are pages that have one for an answer like this.
type faults interface {
	Fault(w http.ResponseWriter, r *http.Request, status int, text string)
}
