package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Admin are the settings of the console and of its API: who may see and decide what.
type Admin struct {
	// ReadTokens are the tokens of those who may see, by name.
	//
	// In the file: the tokens of those who may see, by name. The value is a token, or several with spaces between.
	ReadTokens map[string]string `knob:"read_tokens" like:"read_tokens: {grafana: ${READ_TOKEN}}" secret:"true"`
	// OperateTokens are the tokens of those who may also decide, by the name that the audit gets.
	//
	// In the file: the tokens of those who may also decide, by the name that the [audit](docs/operations.md) gets.
	OperateTokens map[string]string `knob:"operate_tokens" like:"operate_tokens: {alice: ${ALICE_TOKEN}}" secret:"true"`
	// Users have a bcrypt hash of their password, by name.
	//
	// In the file: users by name, with the bcrypt hash of their password, as `htpasswd -nB -C 12 NAME`
	// makes it (a cost from 10 to 14). They may see.
	Users map[string]string `knob:"users" like:"users: {bob: ${BOB_HASH}}" secret:"true"`
	// Operators are the names of users, and of those whom a proxy names, that may also decide.
	//
	// In the file: the names of users, and of those whom the proxy names, that may also decide.
	Operators []string `knob:"operators" like:"operators: [bob]" split:"true"`
	// ProxyHeader is the header in which a proxy names who asks.
	//
	// In the file: the header in which a proxy that knows its users names the one who asks, such as `X-Forwarded-User`.
	// That one may see. Needs `proxies`.
	ProxyHeader string `knob:"proxy_header" like:"proxy_header: X-Forwarded-User"`
	// Proxies are the addresses from which ProxyHeader counts.
	//
	// In the file: the addresses or networks of the proxies: from any other one the header does not count.
	Proxies []string `knob:"proxies" like:"proxies: [10.0.0.5, 10.1.0.0/16]" split:"true"`
	// Hosts are the names under which a browser may reach the console.
	//
	// In the file: the names under which browsers reach the console, such as the name of the proxy. Default:
	// `localhost`, and addresses.
	Hosts []string `knob:"hosts" like:"hosts: [dispatcher.example]" split:"true"`
	// Payloads says who may see headers and payloads of records.
	//
	// In the file: who may see the headers and payloads of records: those who may decide (`operate`), all who may
	// see (`read`), or no one (`none`).
	Payloads string `knob:"payloads" default:"operate" oneof:"operate read none"`
	// Session is how long a login on the page lasts.
	//
	// In the file: how long a login on the page lasts.
	Session time.Duration `knob:"session" default:"12h" min:"1m" max:"168h"`
}

// Logins reports whether anybody can log in.
func (a Admin) Logins() bool {
	return len(a.ReadTokens)+len(a.OperateTokens)+len(a.Users) > 0 || a.ProxyHeader != ""
}

// decides reports whether somebody can decide, so that the role of the daemon needs the rights of an operator.
func (a Admin) decides() bool { return len(a.OperateTokens)+len(a.Operators) > 0 }

// Inside is what a daemon lends to what it serves beside metrics and health.
type Inside struct {
	// RunConfig is that of the daemon. Its Logger is masked.
	RunConfig
	// Address is the one on which the daemon listens.
	Address net.Addr
}

// Loopback reports whether only this machine can reach the daemon.
func (i Inside) Loopback() bool { return isLoopback(i.Address) }

// Serve makes what a daemon serves beside metrics and health. ctx ends when the daemon begins to stop: long answers end
// then. end is called when it has stopped.
type Serve func(ctx context.Context, i Inside) (handler http.Handler, end func(), err error)

func parseAdmin(n yamlfile.Node) (a Admin) {
	keys := n.Decode(&a, nil)
	tokens := map[string]string{}
	for _, key := range []string{"read_tokens", "operate_tokens"} {
		all := map[string]map[string]string{"read_tokens": a.ReadTokens, "operate_tokens": a.OperateTokens}[key]
		keys.Read(key, func(n yamlfile.Node) { checkTokens(n, all, tokens) })
	}
	keys.Read("users", func(n yamlfile.Node) { checkUsers(n, a) })
	checkNames(keys, a)
	keys.Read("operators", func(n yamlfile.Node) {
		for _, name := range a.Operators {
			if _, is := a.Users[name]; !is && a.ProxyHeader == "" {
				n.Fault("%s is none of the users, and there is no proxy_header: add the user, or give an operate token instead", visible.Quoted(name))
			}
		}
	})
	keys.Read("proxy_header", func(n yamlfile.Node) { checkProxyHeader(n, a) })
	keys.Read("proxies", func(n yamlfile.Node) { checkProxies(n, a) })
	keys.Read("hosts", func(n yamlfile.Node) {
		for _, host := range a.Hosts {
			if host == "" || strings.ContainsAny(host, ":/ *@") {
				n.Fault("%s is not the name of a host: write it without a scheme, a port and a path", visible.Quoted(host))
			}
		}
	})
	return a
}

// checkTokens checks the tokens of one key. taken has the names of the others.
func checkTokens(n yamlfile.Node, all, taken map[string]string) {
	m := n.AnyMapping()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, _ := m.Get(name)
		if err := checkLogin(name); err != nil {
			n.Fault("%v", err)
		}
		for _, token := range strings.Fields(all[name]) {
			if _, has := taken[token]; has {
				n.Fault("another name has the same token: make another one with openssl rand -hex 32")
			}
			taken[token] = name
		}
		if err := checkToken(all[name]); err != nil && n.Sound() {
			n.Fault("%v", err)
		}
	}
}

func checkUsers(n yamlfile.Node, a Admin) {
	m := n.AnyMapping()
	for _, name := range slices.Sorted(maps.Keys(a.Users)) {
		n, _ := m.Get(name)
		if err := checkLogin(name); err != nil {
			n.Fault("%v", err)
		}
		if cost, err := bcrypt.Cost([]byte(a.Users[name])); n.Sound() && (err != nil || cost < minBcryptCost || cost > maxBcryptCost) {
			n.Fault("it is not a bcrypt hash with a cost from %d to %d: htpasswd -nB -C 12 %s makes one", minBcryptCost, maxBcryptCost, visible.Shell(name))
		}
	}
}

// checkNames refuses a name that several keys have: the audit could not show which login it was, and it would depend on
// the login what the name may do.
func checkNames(keys yamlfile.Mapping, a Admin) {
	places := map[string][]string{}
	for _, of := range []struct {
		key    string
		logins map[string]string
	}{{"read_tokens", a.ReadTokens}, {"operate_tokens", a.OperateTokens}, {"users", a.Users}} {
		keys.Read(of.key, func(n yamlfile.Node) {
			m := n.AnyMapping()
			for _, name := range slices.Sorted(maps.Keys(of.logins)) {
				if others := places[name]; len(others) > 0 {
					n, _ := m.Get(name)
					n.Fault("%s is a name in %s, too: give each login a name of its own: the audit has no more than the name", visible.Quoted(name), strings.Join(others, " and "))
				}
				places[name] = append(places[name], of.key)
			}
		})
	}
}

// The costs bound how long one login computes: at least about 50 milliseconds, and at most about a second. htpasswd has a
// cost of 5 by itself, with which a hash that someone gets hold of is soon guessed.
const (
	minBcryptCost = 10
	maxBcryptCost = 14
)

// checkLogin returns what is wrong with a name that the audit is to have.
func checkLogin(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name || len(name) > maxNameBytes:
		return fmt.Errorf("the name of a login has between 1 and %d bytes, and no space at its ends", maxNameBytes)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == ':' || visible.Hidden(r) }):
		return errors.New("the name of a login must not have a colon, or a character that cannot be printed")
	default:
		return nil
	}
}

func checkProxyHeader(n yamlfile.Node, a Admin) {
	switch {
	case strings.ContainsFunc(a.ProxyHeader, func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') }):
		n.Fault("%s is not the name of a header", visible.Quoted(a.ProxyHeader))
	case slices.Contains([]string{"Authorization", "Cookie", "Host", "Origin"}, http.CanonicalHeaderKey(a.ProxyHeader)):
		n.Fault("a browser sets this header by itself: choose one that the proxy alone sets, and removes from what clients send")
	case len(a.Proxies) == 0:
		n.Fault("any client could send this header: list the addresses of the proxies under proxies")
	}
}

func checkProxies(n yamlfile.Node, a Admin) {
	if a.ProxyHeader == "" {
		n.Fault("proxies need proxy_header, in which they name who asks")
	}
	for _, proxy := range a.Proxies {
		if _, err := ParseNetwork(proxy); err != nil {
			n.Fault("%s is not an address or a network, such as 10.0.0.5 or 10.1.0.0/16", visible.Quoted(proxy))
		}
	}
}

// loopbacks are the networks of a machine itself.
var loopbacks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// exposures finds the proxies that every account of this machine can stand in for: it reaches the daemon from the same
// address, and can name an operator in the header.
func (a Admin) exposures() (all []exposure) {
	if len(a.Operators) == 0 {
		return nil
	}
	for _, proxy := range a.Proxies {
		if network, err := ParseNetwork(proxy); err == nil && slices.ContainsFunc(loopbacks, network.Overlaps) {
			all = append(all, exposure{"", fmt.Sprintf("admin.proxies has %s, an address of this machine: each of its accounts can send %s with the name of an operator, and decide", proxy, a.ProxyHeader),
				"give no account of this machine to those who must not decide, or run the proxy on another machine"})
		}
	}
	return all
}

// ParseNetwork reads an address, or a network.
func ParseNetwork(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return address.Prefix(address.BitLen())
}
