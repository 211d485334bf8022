package admin_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const (
	everywhere = "0.0.0.0:0"
	pauseA     = `{"verb": "pause", "process": "a"}`
)

var forms = map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}

// with adds headers to others.
func with(headers map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for name, value := range headers {
		all[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func jsonWith(more ...string) map[string]string {
	return with(map[string]string{"Content-Type": "application/json"}, more...)
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Costs of a hash, as it names them. With -race one of the least cost that the file may have takes seconds, so servers of tests
// get the cheapest one in its place: see configure.
const (
	costOfTheFile = "$2a$10$"
	costOfTests   = "$2a$04$"
)

// hash is the bcrypt hash of a password, as the file may have it.
func hash(t testing.TB, password string) string {
	t.Helper()
	text, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	return strings.Replace(string(text), costOfTests, costOfTheFile, 1)
}

func TestGate_ThisMachineMayLookAndNotDecide(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	require.Equal(t, http.StatusOK, s.send(request{path: "/api/v1/fleet"}).status)
	require.Equal(t, http.StatusOK, s.send(request{path: "/"}).status)
	for _, path := range []string{"/api/v1/preview", "/api/v1/decide"} {
		a := s.send(request{method: http.MethodPost, path: path, body: pauseA, header: jsonWith()})
		require.Equal(t, http.StatusForbidden, a.status, a.body)
	}
	require.Equal(t, http.StatusForbidden, s.send(as(readToken, http.MethodPost, "/api/v1/decide", pauseA)).status, "the scope is to read")
	require.Equal(t, http.StatusOK, s.send(as(operateToken, http.MethodPost, "/api/v1/preview", pauseA)).status)
}

func TestGate_OtherAddressesNeedALogin(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{logins, "{}"} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, everywhere, settings, processA)
			for _, path := range []string{"/api/v1/fleet", "/api/v1/me", "/api/v1/openapi.yaml", "/api/v1/events", "/", "/live", "/debug/pprof", "/debug/vars"} {
				a := s.send(request{path: path})
				require.Equal(t, http.StatusUnauthorized, a.status, path)
			}
			require.NotEmpty(t, s.send(request{path: "/api/v1/fleet"}).header.Get("WWW-Authenticate"))
			require.Equal(t, http.StatusOK, s.send(request{path: "/login"}).status)
			require.Equal(t, http.StatusOK, s.send(request{path: "/assets/app.js"}).status)
			for _, path := range []string{"/metrics", "/healthz"} {
				require.Equal(t, http.StatusOK, s.send(request{path: path}).status, "metrics and health are as before")
				require.Equal(t, http.StatusMethodNotAllowed, s.send(request{method: http.MethodPost, path: path}).status)
			}
			require.Equal(t, settings == logins, s.send(as(readToken, http.MethodGet, "/api/v1/fleet", "")).status == http.StatusOK)
		})
	}
}

func TestGate_TakesTwoTokensOfOneNameAndNoOther(t *testing.T) {
	t.Parallel()
	former := "former-" + operateToken
	s := openAt(t, everywhere, fmt.Sprintf(`{operate_tokens: {alice: "%s %s"}}`, operateToken, former), processA)
	for token, want := range map[string]int{
		operateToken: http.StatusOK, former: http.StatusOK, operateToken + "x": http.StatusUnauthorized, operateToken[1:]: http.StatusUnauthorized,
		"": http.StatusUnauthorized, operateToken + " " + former: http.StatusUnauthorized,
	} {
		require.Equal(t, want, s.send(as(token, http.MethodGet, "/api/v1/me", "")).status, token)
	}
	a := s.send(request{path: "/api/v1/me", header: map[string]string{"Authorization": "Digest x"}})
	require.Equal(t, http.StatusUnauthorized, a.status)
}

func TestGate_UsersHavePasswordsAndSomeMayOperate(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, fmt.Sprintf("{users: {bob: '%s', carol: '%s'}, operators: [carol]}", hash(t, "bobs password"), hash(t, "carols password")), processA)
	for _, c := range []struct {
		user, password string
		look, preview  int
	}{
		{"bob", "bobs password", http.StatusOK, http.StatusForbidden},
		{"carol", "carols password", http.StatusOK, http.StatusOK},
		{"bob", "carols password", http.StatusUnauthorized, http.StatusUnauthorized},
		{"nobody", "bobs password", http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		header := jsonWith("Authorization", basic(c.user, c.password))
		require.Equal(t, c.look, s.send(request{path: "/api/v1/me", header: header}).status, c.user)
		if c.look == http.StatusOK { // it is known by now
			require.Equal(t, c.look, s.send(request{path: "/api/v1/me", header: header}).status, c.user)
			require.Equal(t, c.preview, s.send(request{method: http.MethodPost, path: "/api/v1/preview", body: pauseA, header: header}).status, c.user)
		}
	}
	cross := jsonWith("Authorization", basic("carol", "carols password"), "Origin", "https://evil.example")
	require.Equal(t, http.StatusForbidden, s.send(request{method: http.MethodPost, path: "/api/v1/preview", body: pauseA, header: cross}).status, "a browser sends a password by itself")
}

func TestGate_BelievesOnlyTheProxiesOfTheFile(t *testing.T) {
	t.Parallel()
	const named = "{proxy_header: X-Forwarded-User, proxies: [%s], operators: [dora]}"
	for proxies, want := range map[string]int{"127.0.0.1": http.StatusOK, "127.0.0.0/8": http.StatusOK, "10.0.0.5": http.StatusUnauthorized} {
		t.Run(proxies, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, everywhere, fmt.Sprintf(named, proxies), processA)
			a := s.send(request{path: "/api/v1/me", header: map[string]string{"X-Forwarded-User": "dora"}})
			require.Equal(t, want, a.status)
			if want == http.StatusOK {
				require.Contains(t, a.body, `"name":"dora","read":true,"operate":true`)
				require.Contains(t, s.send(request{path: "/api/v1/me", header: map[string]string{"X-Forwarded-User": "eve"}}).body, `"operate":false`)
				require.Equal(t, http.StatusUnauthorized, s.send(request{path: "/api/v1/me"}).status, "the proxy names nobody")
			}
		})
	}
}

// A proxy that checks passwords itself passes the header with them on.
func TestGate_WhomAProxyNamesCountsBeforeAPassword(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, "{proxy_header: X-Forwarded-User, proxies: [127.0.0.1], operators: [dora], read_tokens: {grafana: "+readToken+"}}", processA)
	for _, given := range []string{basic("dora", "a password of the proxy"), "Bearer " + readToken, "Negotiate x"} {
		a := s.send(request{path: "/api/v1/me", header: map[string]string{"X-Forwarded-User": "dora", "Authorization": given}})
		require.Equal(t, http.StatusOK, a.status, given)
		require.Contains(t, a.body, `"name":"dora"`)
	}
	a := s.send(request{path: "/api/v1/me", header: map[string]string{"Authorization": "Bearer " + readToken}})
	require.Contains(t, a.body, `"name":"grafana"`, "the proxy names nobody")
}

// A proxy on the same machine passes on requests of others.
func TestGate_ARequestThatWasPassedOnIsNotOfThisMachine(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	for _, header := range []string{
		"X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Client-IP", "True-Client-IP",
		"X-Cluster-Client-IP", "CF-Connecting-IP", "CF-Ray", "X-Envoy-External-Address", "X-Original-Forwarded-For",
	} {
		for _, value := range []string{"203.0.113.7", ""} {
			require.Equal(t, http.StatusUnauthorized, s.send(request{path: "/api/v1/fleet", header: map[string]string{header: value}}).status, header)
		}
	}
	require.Equal(t, http.StatusOK, s.send(request{path: "/api/v1/fleet", header: map[string]string{"X-Other": "203.0.113.7"}}).status)
}

// A client may send an empty line of its own before that of the proxy.
func TestGate_AnEmptyLineHidesNoOther(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/fleet", nil)
	require.NoError(t, err)
	r.Header["X-Forwarded-For"] = []string{"", "203.0.113.7"}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

// A proxy that the file does not list may name somebody.
func TestGate_AHeaderThatNamesSomebodyShowsAProxy(t *testing.T) {
	t.Parallel()
	s := open(t, "{proxy_header: X-Auth-User, proxies: [10.0.0.5]}", processA)
	require.Equal(t, http.StatusOK, s.send(request{path: "/api/v1/fleet"}).status)
	require.Equal(t, http.StatusUnauthorized, s.send(request{path: "/api/v1/fleet", header: map[string]string{"X-Auth-User": "dora"}}).status)
}

// Who uses another name than localhost may have come through a proxy that keeps the name.
func TestGate_OnlyTheNameOfThisMachineLooksWithoutALogin(t *testing.T) {
	t.Parallel()
	s := open(t, "{hosts: [console.example, localhost.example], read_tokens: {grafana: "+readToken+"}}", processA)
	for host, want := range map[string]int{
		"localhost": http.StatusOK, "LOCALHOST:9090": http.StatusOK, "127.0.0.1": http.StatusOK, "127.9.9.9:80": http.StatusOK, "[::1]": http.StatusOK, "[::1]:1": http.StatusOK,
		"console.example": http.StatusUnauthorized, "localhost.example": http.StatusUnauthorized, "10.1.2.3:9090": http.StatusUnauthorized, "0.0.0.0": http.StatusUnauthorized,
		"[2001:db8::1]:9090": http.StatusUnauthorized,
	} {
		for _, path := range []string{"/api/v1/fleet", "/", "/api/v1/events"} {
			if want == http.StatusOK && path == "/api/v1/events" {
				continue // it has no end
			}
			require.Equal(t, want, s.send(request{path: path, host: host}).status, host)
		}
		q := as(readToken, http.MethodGet, "/api/v1/fleet", "")
		q.host = host
		require.Equal(t, http.StatusOK, s.send(q).status, host)
	}
}

func TestGate_AProxyOnThisMachineThatNamesNobody(t *testing.T) {
	t.Parallel()
	s := open(t, "{proxy_header: X-Forwarded-User, proxies: [127.0.0.1]}", processA)
	require.Equal(t, http.StatusUnauthorized, s.send(request{path: "/api/v1/fleet"}).status)
	require.Equal(t, http.StatusOK, s.send(request{path: "/api/v1/fleet", header: map[string]string{"X-Forwarded-User": "dora"}}).status)
}

func TestGate_RefusesNamesThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	s := open(t, "{hosts: [console.example], read_tokens: {grafana: "+readToken+"}}", processA)
	for host, want := range map[string]int{
		"rebound.example": http.StatusMisdirectedRequest, "rebound.example:80": http.StatusMisdirectedRequest, "localhost.rebound.example": http.StatusMisdirectedRequest,
		"127.0.0.1.rebound.example": http.StatusMisdirectedRequest, "console.example": http.StatusOK, "CONSOLE.example:9090": http.StatusOK, "localhost": http.StatusOK, "[::1]:1": http.StatusOK, "10.1.2.3": http.StatusOK,
	} {
		for _, path := range []string{"/api/v1/me", "/", "/assets/app.js"} {
			q := as(readToken, http.MethodGet, path, "")
			q.host = host
			require.Equal(t, want, s.send(q).status, host)
		}
	}
	require.Equal(t, http.StatusMisdirectedRequest, s.send(request{path: "/metrics", host: "rebound.example"}).status, "as before")
}

func TestGate_EveryAnswerHasStrictHeaders(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	for _, q := range []request{{path: "/"}, {path: "/api/v1/fleet"}, {path: "/nothing"}, {path: "/api/v1/nothing"}, {path: "/", host: "rebound.example"}, {method: http.MethodPut, path: "/"}, as("wrong", http.MethodGet, "/", "")} {
		h := s.send(q).header
		csp := h.Get("Content-Security-Policy")
		require.Contains(t, csp, "default-src 'none'")
		require.Contains(t, csp, "frame-ancestors 'none'")
		require.NotContains(t, csp, "unsafe")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
}

func TestGate_OtherSitesCannotSendNorLoad(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	post := func(header map[string]string) request {
		return request{method: http.MethodPost, path: "/api/v1/find", body: `{"by":"id","text":"1"}`, header: header}
	}
	for name, c := range map[string]struct {
		request
		want int
	}{
		"a program":                 {post(jsonWith()), http.StatusOK},
		"another site":              {post(jsonWith("Sec-Fetch-Site", "cross-site")), http.StatusForbidden},
		"a sibling":                 {post(jsonWith("Sec-Fetch-Site", "same-site")), http.StatusForbidden},
		"another origin":            {post(jsonWith("Origin", "http://evil.example")), http.StatusForbidden},
		"an origin without a name":  {post(jsonWith("Origin", "null")), http.StatusForbidden},
		"a page without its token":  {post(jsonWith("Origin", s.url)), http.StatusForbidden},
		"a page of ours, no token":  {post(jsonWith("Sec-Fetch-Site", "same-origin")), http.StatusForbidden},
		"a form of another site":    {post(map[string]string{"Content-Type": "text/plain"}), http.StatusUnsupportedMediaType},
		"a form":                    {post(map[string]string{"Content-Type": "application/x-www-form-urlencoded"}), http.StatusUnsupportedMediaType},
		"an image of another site":  {request{path: "/api/v1/fleet", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}}, http.StatusForbidden},
		"a link from another site":  {request{path: "/", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}}, http.StatusOK},
		"a method that is not ours": {request{method: http.MethodDelete, path: "/api/v1/fleet"}, http.StatusMethodNotAllowed},
		"a preflight":               {request{method: http.MethodOptions, path: "/api/v1/fleet", header: map[string]string{"Origin": "http://evil.example"}}, http.StatusMethodNotAllowed},
		"a GET that decides":        {as(operateToken, http.MethodGet, "/api/v1/decide?verb=pause&process=a", ""), http.StatusNotFound},
	} {
		require.Equal(t, c.want, s.send(c.request).status, name)
	}
}

// Two parts of the program must not read one path in two ways.
func TestGate_APathIsSpelledInOneWay(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, logins, processA)
	for _, path := range []string{"/assets/../audit", "/assets//../audit", "/login/../api/v1/fleet", "/assets/%2e%2e/audit", "/assets/..%2faudit", "/processes/a/%6cive", "/api/v1/event%73", "/metrics/../api/v1/fleet", "/healthz/"} {
		a := s.send(request{path: path})
		require.NotContains(t, []int{http.StatusOK, http.StatusForbidden}, a.status, path)
		require.Empty(t, a.cookies, path)
	}
}

func TestGate_BoundsWhatItReads(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	large := `{"by":"id","text":"` + strings.Repeat("x", 70_000) + `"}`
	require.Equal(t, http.StatusRequestEntityTooLarge, s.send(as(readToken, http.MethodPost, "/api/v1/find", large)).status)
	chunked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v1/find", struct{ *strings.Reader }{strings.NewReader(large)})
	require.NoError(t, err)
	chunked.ContentLength = -1
	chunked.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(chunked)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	require.Equal(t, http.StatusRequestURITooLong, s.send(request{path: "/?" + strings.Repeat("x", 3000)}).status)
	for _, body := range []string{`{"by":"id","text":"1","unknown":1}`, `{"by":"id","text":"1"}{}`, `[]`, `{`, ``} {
		q := as(readToken, http.MethodPost, "/api/v1/find", body)
		q.header["Content-Type"] = "application/json"
		require.Equal(t, http.StatusBadRequest, s.send(q).status, body)
	}
	for body, want := range map[string]string{`{"verb": "pause", "proces": "a"}`: `it has no field \"proces\"`, `{"order": {"verb": "skip"}, "expect": {"at": "x"}}`: "the field expect cannot be of the type object"} {
		path := "/api/v1/preview"
		if strings.Contains(body, "expect") {
			path = "/api/v1/decide"
		}
		require.Contains(t, s.send(as(operateToken, http.MethodPost, path, body)).body, want)
	}
	require.Equal(t, http.StatusBadRequest, s.send(as(readToken, http.MethodGet, "/api/v1/audit?limit=1000000", "")).status)
	require.Equal(t, http.StatusBadRequest, s.send(as(readToken, http.MethodGet, "/api/v1/audit?where=1", "")).status)
}

func TestGate_ManyFailedLoginsAreRefusedForAWhile(t *testing.T) {
	t.Parallel()
	s := openStill(t, everywhere, "{users: {bob: '"+hash(t, "bobs password")+"'}, operate_tokens: {alice: "+operateToken+"}}", processA)
	session := s.logIn(url.Values{"token": {operateToken}})
	login := func(password string) request {
		return request{path: "/api/v1/me", header: map[string]string{"Authorization": basic("bob", password)}}
	}
	for range 10 {
		require.Equal(t, http.StatusUnauthorized, s.send(login("guessed-0123456789")).status)
	}
	a := s.send(login("bobs password"))
	require.Equal(t, http.StatusTooManyRequests, a.status)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Equal(t, http.StatusTooManyRequests, s.tryLogIn(url.Values{"user": {"bob"}, "password": {"bobs password"}}).status)
	require.Equal(t, http.StatusOK, s.send(request{path: "/", header: session.header()}).status, "who is in stays in")
	require.Equal(t, http.StatusOK, s.send(as(operateToken, http.MethodGet, "/api/v1/me", "")).status, "a token")
	s.logIn(url.Values{"token": {operateToken}})
	require.NotContains(t, s.log.String(), "guessed-0123456789")
}

// No one guesses a token. So a program with an old one must not lock out the others at its address.
func TestGate_WrongTokensLockNobodyOut(t *testing.T) {
	t.Parallel()
	s := openStill(t, everywhere, "{users: {bob: '"+hash(t, "bobs password")+"'}, operate_tokens: {alice: "+operateToken+"}}", processA)
	for range 11 {
		require.Equal(t, http.StatusUnauthorized, s.send(as("former-0123456789-0123456789", http.MethodGet, "/api/v1/me", "")).status)
		require.Equal(t, http.StatusUnauthorized, s.tryLogIn(url.Values{"token": {"former-0123456789-0123456789"}}).status)
	}
	require.Equal(t, http.StatusOK, s.send(as(operateToken, http.MethodGet, "/api/v1/me", "")).status)
	s.logIn(url.Values{"token": {operateToken}})
	s.logIn(url.Values{"user": {"bob"}, "password": {"bobs password"}})
	require.Equal(t, 10, strings.Count(s.log.String(), "a login of the console failed"), "the log has enough of them")
	require.NotContains(t, s.log.String(), "former-0123456789")
}

// All clients of a proxy have its address.
func TestGate_FailuresAreCountedByTheClientOfAProxy(t *testing.T) {
	t.Parallel()
	const settings = "{proxy_header: X-Forwarded-User, proxies: [%s], users: {bob: '%s'}}"
	hashed := hash(t, "bobs password")
	for proxy, others := range map[string]int{"127.0.0.1": http.StatusOK, "10.0.0.5": http.StatusTooManyRequests} {
		t.Run(proxy, func(t *testing.T) {
			t.Parallel()
			s := openStill(t, everywhere, fmt.Sprintf(settings, proxy, hashed), processA)
			login := func(password, client string) int {
				return s.send(request{path: "/api/v1/me", header: map[string]string{"Authorization": basic("bob", password), "X-Forwarded-For": client}}).status
			}
			for i := range 10 {
				require.Equal(t, http.StatusUnauthorized, login("wrong", fmt.Sprintf("192.0.2.%d, 203.0.113.7", i)), "the client writes all but the last")
			}
			require.Equal(t, http.StatusTooManyRequests, login("bobs password", "203.0.113.7"))
			require.Equal(t, others, login("bobs password", "203.0.113.7, 203.0.113.8"))
		})
	}
}

// browser is what a browser keeps of a login.
type browser struct{ cookies []*http.Cookie }

func (b browser) header(more ...string) map[string]string {
	var pairs []string
	for _, c := range b.cookies {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	return with(map[string]string{"Cookie": strings.Join(pairs, "; ")}, more...)
}

// token is the CSRF token that a page of the visitor has.
func (s *site) token(b browser) string {
	s.t.Helper()
	a := s.send(request{path: "/login", header: b.header()})
	require.Equal(s.t, http.StatusOK, a.status)
	return strings.Split(a.body, "\n")[1]
}

// tryLogIn sends the form of the page.
func (s *site) tryLogIn(form url.Values) answered {
	s.t.Helper()
	page := s.send(request{path: "/login"})
	form.Set("csrf", strings.Split(page.body, "\n")[1])
	return s.send(request{method: http.MethodPost, path: "/login", body: form.Encode(), header: with(browser{page.cookies}.header(), "Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin")})
}

func (s *site) logIn(form url.Values) browser {
	s.t.Helper()
	a := s.tryLogIn(form)
	require.Equal(s.t, http.StatusSeeOther, a.status, a.body)
	require.Equal(s.t, "/", a.header.Get("Location"))
	return browser{a.cookies}
}

func TestGate_ASessionLastsUntilItsEnd(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, logins, processA)
	b := s.logIn(url.Values{"token": {operateToken}})
	c := b.cookies[0]
	require.Equal(t, "od-session", c.Name)
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.Empty(t, c.Domain)
	require.Len(t, c.Value, 43, "256 bits")
	require.Contains(t, s.send(request{path: "/", header: b.header()}).body, "alice\n")

	decide := request{method: http.MethodPost, path: "/processes/a/decide"}
	other := s.logIn(url.Values{"token": {operateToken}})
	for name, c := range map[string]struct {
		header map[string]string
		form   string
		want   int
	}{
		"its token":            {b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin"), "csrf=" + url.QueryEscape(s.token(b)), http.StatusOK},
		"its token by header":  {b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin", "X-CSRF-Token", s.token(b)), "", http.StatusOK},
		"no token":             {b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin"), "x=1", http.StatusForbidden},
		"another one's token":  {b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin"), "csrf=" + url.QueryEscape(s.token(other)), http.StatusForbidden},
		"another origin":       {b.header("Content-Type", forms["Content-Type"], "Origin", "https://evil.example"), "csrf=" + url.QueryEscape(s.token(b)), http.StatusForbidden},
		"no word on its page":  {b.header("Content-Type", forms["Content-Type"]), "csrf=" + url.QueryEscape(s.token(b)), http.StatusForbidden},
		"the token in the URL": {b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin"), "", http.StatusForbidden},
	} {
		decide.header, decide.body = c.header, c.form
		if name == "the token in the URL" {
			decide.path += "?csrf=" + url.QueryEscape(s.token(b))
		}
		require.Equal(t, c.want, s.send(decide).status, name)
		decide.path = "/processes/a/decide"
	}
	api := request{method: http.MethodPost, path: "/api/v1/preview", body: pauseA, header: b.header("Content-Type", "application/json", "Sec-Fetch-Site", "same-origin")}
	require.Equal(t, http.StatusForbidden, s.send(api).status)
	api.header["X-CSRF-Token"] = s.token(b)
	require.Equal(t, http.StatusOK, s.send(api).status)
	delete(api.header, "Sec-Fetch-Site")
	require.Equal(t, http.StatusForbidden, s.send(api).status, "a cookie goes along by itself")

	out := request{method: http.MethodPost, path: "/logout", body: "csrf=" + url.QueryEscape(s.token(b)), header: b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin")}
	require.Equal(t, http.StatusSeeOther, s.send(out).status)
	require.Equal(t, http.StatusUnauthorized, s.send(request{path: "/", header: b.header()}).status)
	require.Equal(t, http.StatusOK, s.send(request{path: "/", header: other.header()}).status, "the other session goes on")
}

func TestGate_WrongLoginsOfThePage(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, "{users: {bob: '"+hash(t, "bobs password")+"'}, read_tokens: {grafana: "+readToken+"}}", processA)
	for _, form := range []url.Values{{"token": {"wrong"}}, {"user": {"bob"}, "password": {"wrong"}}, {"user": {"eve"}, "password": {"bobs password"}}, {}} {
		a := s.tryLogIn(form)
		require.Equal(t, http.StatusUnauthorized, a.status)
		require.Contains(t, a.body, "this login is not known")
		for _, c := range a.cookies {
			require.NotContains(t, c.Name, "session")
		}
	}
	require.Contains(t, s.send(request{path: "/", header: s.logIn(url.Values{"user": {"bob"}, "password": {"bobs password"}}).header()}).body, "bob\n")
	forged := request{method: http.MethodPost, path: "/login", body: "token=" + readToken, header: forms}
	require.Equal(t, http.StatusForbidden, s.send(forged).status, "another site must not log somebody in")
	require.Equal(t, http.StatusUnauthorized, s.send(request{path: "/", header: map[string]string{"Cookie": "od-session=" + strings.Repeat("A", 43)}}).status)
}

func TestGate_ABehindAProxyWithTLSHasASecureCookie(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, "{proxy_header: X-Forwarded-User, proxies: [127.0.0.1], read_tokens: {grafana: "+readToken+"}}", processA)
	page := s.send(request{path: "/login", header: map[string]string{"X-Forwarded-Proto": "https"}})
	require.Equal(t, "__Host-od-visit", page.cookies[0].Name)
	require.True(t, page.cookies[0].Secure)
	form := url.Values{"token": {readToken}, "csrf": {strings.Split(page.body, "\n")[1]}}
	a := s.send(request{method: http.MethodPost, path: "/login", body: form.Encode(),
		header: browser{page.cookies}.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin", "X-Forwarded-Proto", "https")})
	require.Equal(t, http.StatusSeeOther, a.status, a.body)
	require.Equal(t, "__Host-od-session", a.cookies[0].Name)
	require.True(t, a.cookies[0].Secure)
}

// stream opens a stream, and returns its lines.
func (s *site) stream(ctx context.Context, path string, header map[string]string) (*http.Response, *bufio.Scanner) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	require.NoError(s.t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = response.Body.Close() })
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 16<<20)
	return response, scanner
}

func TestGate_AStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	s := openAt(t, everywhere, logins, processA)
	b := s.logIn(url.Values{"token": {readToken}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	response, lines := s.stream(ctx, "/api/v1/events", b.header())
	require.Equal(t, http.StatusOK, response.StatusCode)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "event: fleet") {
	}
	out := request{method: http.MethodPost, path: "/logout", body: "csrf=" + url.QueryEscape(s.token(b)), header: b.header("Content-Type", forms["Content-Type"], "Sec-Fetch-Site", "same-origin")}
	require.Equal(t, http.StatusSeeOther, s.send(out).status)
	for lines.Scan() { // until its end
	}
	require.NoError(t, ctx.Err(), "the stream goes on")
}

// The write timeout of the listener is 15 s, and its read timeout 5 s.
func TestGate_AStreamOutlivesTheTimeoutsOfTheListener(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	began := time.Now()
	_, lines := s.stream(t.Context(), "/api/v1/events?process=a", nil)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: process") && time.Since(began) > 17*time.Second {
			return
		}
	}
	t.Fatalf("the stream ended after %v: %v", time.Since(began), lines.Err())
}

// Nothing bounds how many of them are open if one is no stream to the gate.
func TestGate_AStreamIsReadByGETAlone(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	for _, path := range []string{"/api/v1/events", "/api/v1/events?process=a", "/live", "/processes/a/live"} {
		for _, method := range []string{http.MethodHead, http.MethodPost} {
			a := s.send(as(operateToken, method, path, ""))
			require.Equal(t, http.StatusMethodNotAllowed, a.status, path)
			require.Equal(t, http.MethodGet, a.header.Get("Allow"))
		}
	}
	require.Equal(t, http.StatusOK, s.send(request{method: http.MethodHead, path: "/"}).status)
}

func TestGate_StreamsAreBoundedAndEndWithTheDaemon(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last *bufio.Scanner
	fill := func(n int, header map[string]string) {
		for range n {
			response, lines := s.stream(ctx, "/live", header)
			require.Equal(t, http.StatusOK, response.StatusCode)
			last = lines
		}
	}
	fill(80, nil)
	refused := func(header map[string]string) {
		response, _ := s.stream(ctx, "/api/v1/events", header)
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		require.NotEmpty(t, response.Header.Get("Retry-After"))
	}
	refused(nil)
	refused(as(readToken, "", "", "").header)
	operator := as(operateToken, "", "", "").header
	fill(20, operator)
	refused(operator)
	s.stop()
	for last.Scan() { // until its end
	}
}

// Searches of those who may only look may wait for the database, and many of them for their turn.
func TestGate_AnOperatorIsAnsweredWhileOthersSearch(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	ctx, cancel := context.WithCancel(t.Context())
	lock := pgtest.Begin(t, s.pool, "LOCK TABLE public.bookings IN ACCESS EXCLUSIVE MODE")
	var searches sync.WaitGroup
	for range 8 {
		searches.Go(func() {
			for ctx.Err() == nil {
				response, err := http.Post(s.url+"/api/v1/find", "application/json", strings.NewReader(`{"by": "id", "text": "1"}`))
				if err == nil {
					_ = response.Body.Close()
				}
			}
		})
	}
	require.Eventually(t, func() bool { return s.send(request{path: "/api/v1/audit"}).status == http.StatusTooManyRequests }, patience, time.Millisecond)
	a := s.send(as(operateToken, http.MethodGet, "/api/v1/audit", ""))
	require.Equal(t, http.StatusOK, a.status, a.body)
	cancel()
	searches.Wait()
	require.NoError(t, lock.Rollback(t.Context()))
}

// PostgreSQL takes neither a zero byte nor text that is not UTF-8.
func TestGate_TextThatNoDatabaseTakesIsAWrongQuestion(t *testing.T) {
	t.Parallel()
	s := open(t, logins, processA)
	form := as(readToken, http.MethodPost, "/find", "by=id&value=a%00b")
	form.header["Content-Type"] = "application/x-www-form-urlencoded"
	letters := form
	letters.path, letters.body = "/letters", "process=a&error=a%00b"
	broken := form
	broken.body = "by=id&%zz=1&value=%ff"
	for _, q := range []request{
		form, letters, broken,
		as(readToken, http.MethodPost, "/api/v1/find", `{"by": "id", "text": "a\u0000b"}`),
		as(readToken, http.MethodPost, "/api/v1/dead-letters", `{"process": "a", "error": "\u0000"}`),
		as(readToken, http.MethodGet, "/api/v1/audit?process=%00", ""),
		as(readToken, http.MethodGet, "/api/v1/audit?actor=%ff", ""),
		as(readToken, http.MethodGet, "/api/v1/processes/%00", ""),
		as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "seek", "process": "a", "to": {"kind": "id", "value": "\u0000"}}`),
	} {
		a := s.send(q)
		require.Equal(t, http.StatusBadRequest, a.status, "%s %s: %s", q.path, q.body, a.body)
		require.Contains(t, a.body, "a zero byte", q.path)
	}
	fine := as(readToken, http.MethodPost, "/api/v1/find", `{"by": "key", "text": "\\u0000"}`)
	require.Equal(t, http.StatusOK, s.send(fine).status, "a backslash and a number")
}

// Nothing of what the file keeps secret may be in a log or an answer.
func TestGate_KeepsSecrets(t *testing.T) {
	t.Parallel()
	bobs := hash(t, "bobs password")
	s := openAt(t, everywhere, "{read_tokens: {grafana: "+readToken+"}, operate_tokens: {alice: "+operateToken+"}, users: {bob: '"+bobs+"'}}", processA)
	insert(t, s.pool, "ann", 1)
	b := s.logIn(url.Values{"token": {operateToken}})
	var all strings.Builder
	for _, q := range []request{
		as(operateToken, http.MethodGet, "/api/v1/me", ""), as(operateToken, http.MethodGet, "/api/v1/fleet", ""), as(operateToken, http.MethodGet, "/api/v1/processes/a", ""),
		as(operateToken, http.MethodGet, "/api/v1/audit", ""), as(operateToken, http.MethodGet, "/api/v1/doctor", ""), as(readToken+"x", http.MethodGet, "/api/v1/me", ""),
		{path: "/api/v1/me", header: map[string]string{"Authorization": basic("bob", "bobs password")}}, {path: "/", header: b.header()},
		as(operateToken, http.MethodPost, "/api/v1/preview", `{"verb": "seek", "process": "a", "to": {"kind": "id", "value": "1"}}`),
	} {
		a := s.send(q)
		fmt.Fprintln(&all, a.header, a.body)
	}
	all.WriteString(s.log.String())
	for _, secret := range []string{readToken, operateToken, bobs, "bobs password", b.cookies[0].Value} {
		require.NotContains(t, all.String(), secret)
	}
}
