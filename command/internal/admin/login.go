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
	errScheme  = errors.New("this kind of Authorization is not known: send Bearer with a token, or Basic with a user and a password")
)

// logins are those of the file.
type logins struct {
	tokens    []token
	users     map[string][]byte // bcrypt hashes
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

func (l *logins) add(name, tokens string, operate bool) {
	for _, text := range strings.Fields(tokens) {
		l.tokens = append(l.tokens, token{sha256.Sum256([]byte(text)), name, operate})
	}
}

// byToken finds the login of a token. It compares with all of them, so the time shows nothing.
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

// nobody is a hash to compare with where there is no such user, so that the time does not show that.
var nobody = sync.OnceValue(func() []byte {
	hash, _ := bcrypt.GenerateFromPassword([]byte("nobody has this password"), bcrypt.DefaultCost) // fails for long passwords alone
	return hash
})

// byPassword finds the login of a user. It does not compute the hash of a password again that was right before.
func (l *logins) byPassword(user, password string) (login, bool) {
	hash, exists := l.users[user]
	digest := sha256.Sum256([]byte(user + "\x00" + password))
	l.mu.Lock()
	is := l.known[digest]
	l.mu.Unlock()
	if !is {
		if !exists {
			hash = nobody()
		}
		l.hashing <- struct{}{}
		is = bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && exists
		<-l.hashing
	}
	if !is {
		return login{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[digest] = true
	return login{name: user, read: true, operate: slices.Contains(l.operators, user), by: byPassword}, true
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
	if g.failures.full(r) {
		return login{}, errTooMany
	}
	var l login
	var ok bool
	scheme, rest, _ := strings.Cut(given, " ")
	switch user, password, basic := r.BasicAuth(); {
	case basic:
		l, ok = g.logins.byPassword(user, password)
	case strings.EqualFold(scheme, "Bearer"):
		l, ok = g.logins.byToken(strings.TrimSpace(rest))
	default:
		return login{}, errScheme
	}
	if !ok {
		g.failed(r, scheme)
		return login{}, errWrong
	}
	return l, nil
}

// failed notes a login that failed. The log has nothing of what was sent.
func (g *gate) failed(r *http.Request, how string) {
	address, _ := addressOf(r)
	if g.failures.note(r) {
		g.config.Logger.Warn("a login of the console failed", "from", address.String(), "by", strings.ToLower(visible.Start(visible.Line(how), 16)))
	}
}
