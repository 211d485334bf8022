package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// login is who sends a request, and what that one may do. The zero login may do nothing.
type login struct {
	name          string
	read, operate bool
	by            way
	session       *session
}

// way is how it was found out who sends a request. A browser sends some of them by itself, also for another site.
type way int

const (
	byNothing way = iota
	byMachine     // it comes from this machine
	byToken       // a header that no browser sends by itself
	byPassword
	byProxy
	bySession
)

var (
	errWrong   = errors.New("this login is not known: see that the token or the password is right")
	errTooMany = errors.New("too many logins have failed from this address: wait a minute")
	errGone    = errors.New("the client did not wait for its turn")
	errScheme  = errors.New("this kind of Authorization is not known: send Bearer with a token, or Basic with a user and a password")
)

// logins are those of the file.
type logins struct {
	tokens    []token
	users     map[string][]byte // bcrypt hashes
	slowest   []byte            // the one of users that takes the longest
	operators []string
	header    string
	proxies   []netip.Prefix

	hashing chan struct{} // has an element for each hash that is computed now
	mu      sync.Mutex
	known   map[[sha256.Size]byte]bool // digests of users with passwords that were right
}

type token struct {
	digest  [sha256.Size]byte
	name    string
	operate bool
}

const (
	maxHashing = 2   // passwords that are compared at once: each takes a processor for a while
	maxKnown   = 100 // passwords that were right
)

func newLogins(s daemon.Admin) (*logins, error) {
	l := &logins{users: map[string][]byte{}, operators: s.Operators, header: s.ProxyHeader, hashing: make(chan struct{}, maxHashing), known: map[[sha256.Size]byte]bool{}}
	for name, tokens := range s.ReadTokens {
		l.add(name, tokens, false)
	}
	for name, tokens := range s.OperateTokens {
		l.add(name, tokens, true)
	}
	for name, hash := range s.Users {
		l.users[name] = []byte(hash)
		if costOf(l.users[name]) > costOf(l.slowest) {
			l.slowest = l.users[name]
		}
	}
	for _, text := range s.Proxies {
		prefix, err := daemon.ParseNetwork(text)
		if err != nil {
			return nil, err
		}
		l.proxies = append(l.proxies, prefix.Masked())
	}
	return l, nil
}

// costOf is the cost of a hash; 0 if it is none.
func costOf(hash []byte) int {
	cost, err := bcrypt.Cost(hash)
	if err != nil {
		return 0
	}
	return cost
}

func (l *logins) add(name, tokens string, operate bool) {
	for _, text := range strings.Fields(tokens) {
		l.tokens = append(l.tokens, token{sha256.Sum256([]byte(text)), name, operate})
	}
}

// byToken finds the login of a token. It compares with every token, so the time that it takes
// does not show which one is near.
func (l *logins) byToken(text string) (login, bool) {
	digest := sha256.Sum256([]byte(text))
	found := -1
	for i, t := range l.tokens {
		if subtle.ConstantTimeCompare(t.digest[:], digest[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return login{}, false
	}
	t := l.tokens[found]
	return login{name: t.name, read: true, operate: t.operate, by: byToken}, true
}

// remembered finds the login of a user whose password was right before. It computes no hash.
func (l *logins) remembered(user, password string) (login, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known[digestOf(user, password)] {
		return login{}, false
	}
	return l.ofUser(user), true
}

// byPassword finds the login of a user. It takes as long for a user that does not exist as for the slowest one.
func (l *logins) byPassword(user, password string) (login, bool) {
	hash, exists := l.users[user]
	if !exists {
		hash = l.slowest
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !exists {
		return login{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[digestOf(user, password)] = true
	return l.ofUser(user), true
}

func (l *logins) ofUser(user string) login {
	return login{name: user, read: true, operate: slices.Contains(l.operators, user), by: byPassword}
}

func digestOf(user, password string) [sha256.Size]byte {
	return sha256.Sum256([]byte(user + "\x00" + password))
}

// byProxy finds the login that a proxy names. A header from any other address does not count.
func (l *logins) byProxy(r *http.Request) (login, bool) {
	if l.header == "" || !l.isProxy(r) {
		return login{}, false
	}
	names := r.Header.Values(l.header)
	if len(names) != 1 || names[0] == "" || len(names[0]) > maxName || strings.ContainsFunc(names[0], visible.Hidden) {
		return login{}, false
	}
	return login{name: names[0], read: true, operate: slices.Contains(l.operators, names[0]), by: byProxy}, true
}

// maxName bounds the name that a proxy gives.
const maxName = 256

func (l *logins) isProxy(r *http.Request) bool {
	address, ok := addressOf(r)
	return ok && slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// clientOf is the address of the client: the last one that a proxy of the file names, or else the one from which the
// request comes. The client itself may have written all that stands before the last one.
func (l *logins) clientOf(r *http.Request) netip.Addr {
	address, _ := addressOf(r)
	lines := r.Header.Values("X-Forwarded-For")
	if len(lines) == 0 || !l.isProxy(r) {
		return address
	}
	named := lines[len(lines)-1]
	named = strings.TrimSpace(named[strings.LastIndex(named, ",")+1:])
	if client, err := netip.ParseAddrPort(named); err == nil {
		return client.Addr().Unmap().WithZone("")
	}
	if client, err := netip.ParseAddr(strings.Trim(named, "[]")); err == nil {
		return client.Unmap().WithZone("")
	}
	return address
}

// addressOf is the address from which a request comes.
func addressOf(r *http.Request) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(host)
	return address.Unmap().WithZone(""), err == nil
}

// login finds out who sends a request. It returns an error for credentials that are wrong, even where none are needed.
func (g *gate) login(r *http.Request) (login, error) {
	if l, ok := g.logins.byProxy(r); ok { // a proxy that checks passwords itself passes the header with them on
		return l, nil
	}
	if given := r.Header.Get("Authorization"); given != "" {
		return g.byHeader(r, given)
	}
	if s := g.sessions.find(r); s != nil {
		return login{name: s.name, read: true, operate: s.operate, by: bySession, session: s}, nil
	}
	if g.config.Loopback && isHere(r.Host) && !g.logins.forwarded(r) && !(g.logins.header != "" && g.logins.isProxy(r)) {
		return login{read: true, by: byMachine}, nil
	}
	return login{}, nil
}

// isHere reports whether a name is one that only this machine can use for itself. Any other one may be that of a proxy,
// which passes on the name that its clients use.
func isHere(hostport string) bool {
	host := hostOf(hostport)
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// The headers that show a proxy, by how their names begin and end.
var (
	proxyBegins = []string{"Forwarded", "X-Forwarded", "X-Original-", "X-Envoy-", "Cf-"}
	proxyEnds   = []string{"Real-Ip", "Client-Ip", "Connecting-Ip"}
)

// forwarded reports whether a proxy passed the request on: then it does not come from this machine, although the proxy
// may run here. It asks whether there is such a header. What the header has does not count: a client may send an empty
// line before that of the proxy.
func (l *logins) forwarded(r *http.Request) bool {
	for name := range r.Header {
		if name == "Via" || l.header != "" && strings.EqualFold(name, l.header) ||
			slices.ContainsFunc(proxyBegins, func(begin string) bool { return strings.HasPrefix(name, begin) }) ||
			slices.ContainsFunc(proxyEnds, func(end string) bool { return strings.HasSuffix(name, end) }) {
			return true
		}
	}
	return false
}

func (g *gate) byHeader(r *http.Request, given string) (login, error) {
	scheme, rest, _ := strings.Cut(given, " ")
	switch user, password, basic := r.BasicAuth(); {
	case basic:
		return g.byPassword(r, user, password, scheme)
	case strings.EqualFold(scheme, "Bearer"):
		return g.byToken(r, strings.TrimSpace(rest), scheme)
	default:
		return login{}, errScheme
	}
}

// byToken finds the login of a token. It has too many characters to be guessed, so there is no limit: a program with a
// former token must not lock out the others at its address.
func (g *gate) byToken(r *http.Request, text, how string) (login, error) {
	l, ok := g.logins.byToken(text)
	if !ok {
		g.failed(r, g.strays, how)
		return login{}, errWrong
	}
	return l, nil
}

// byPassword finds the login of a user, unless too many passwords from the same address were wrong.
func (g *gate) byPassword(r *http.Request, user, password, how string) (login, error) {
	if g.failures.full(g.logins.clientOf(r)) {
		return login{}, errTooMany
	}
	if l, ok := g.logins.remembered(user, password); ok {
		return l, nil
	}
	select {
	case g.logins.hashing <- struct{}{}:
		defer func() { <-g.logins.hashing }()
	case <-r.Context().Done():
		return login{}, errGone
	}
	if g.failures.full(g.logins.clientOf(r)) { // others that came at the same time were wrong
		return login{}, errTooMany
	}
	l, ok := g.logins.byPassword(user, password)
	if !ok {
		g.failed(r, g.failures, how)
		return login{}, errWrong
	}
	return l, nil
}

// failed notes a login that failed. The log has nothing of what was sent.
func (g *gate) failed(r *http.Request, in *failures, how string) {
	client := g.logins.clientOf(r)
	if in.note(client) {
		g.config.Logger.Warn("a login of the console failed", "from", client.String(), "by", strings.ToLower(visible.Start(visible.Line(how), 16)))
	}
}
