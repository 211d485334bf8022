package daemon_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

const aToken = "operate-2c8e7d1f4a9b4c6d8e0f1a2b"

func parseAdmin(settings string) (daemon.Admin, error) {
	config, err := daemon.Parse("f.yaml", []byte("schema: "+schema+"\nadmin: "+settings+"\nprocesses:\n"+stdoutProcess), environment(nil), kinds)
	return config.Admin, err
}

func TestParse_AdminSettings(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), 10)
	require.NoError(t, err)
	admin, err := parseAdmin(fmt.Sprintf(`{read_tokens: {g: "%s1 %[1]s2"}, operate_tokens: {alice: %[1]s3}, users: {bob: '%s'}, operators: [bob, dora],
  proxy_header: X-Forwarded-User, proxies: "10.0.0.5, fd00::/8", hosts: [console.example], payloads: none, session: 1h}`, aToken, hash))
	require.NoError(t, err)
	require.Equal(t, daemon.Admin{
		ReadTokens: map[string]string{"g": aToken + "1 " + aToken + "2"}, OperateTokens: map[string]string{"alice": aToken + "3"}, Users: map[string]string{"bob": string(hash)},
		Operators: []string{"bob", "dora"}, ProxyHeader: "X-Forwarded-User", Proxies: []string{"10.0.0.5", "fd00::/8"}, Hosts: []string{"console.example"}, Payloads: "none", Session: time.Hour,
	}, admin)
	require.True(t, admin.Logins())
	empty, err := parseAdmin("{}")
	require.NoError(t, err)
	require.False(t, empty.Logins())
}

func TestParse_AdminSettingsThatWouldLetAnybodyIn(t *testing.T) {
	t.Parallel()
	quick, err := bcrypt.GenerateFromPassword([]byte("secret"), 9)
	require.NoError(t, err)
	for settings, want := range map[string]string{
		"{users: {bob: '" + string(quick) + "'}}":                                                             "it is not a bcrypt hash with a cost from 10 to 14: htpasswd -nB -C 12 bob makes one",
		"{operate_tokens: {alice: short}}":                                                                    "a token has between 24 and 512 characters, and this one has 5",
		"{operate_tokens: {alice: ''}}":                                                                       "it is empty",
		"{operate_tokens: {'': " + aToken + "}}":                                                              "the name of a login has between 1 and 63 bytes",
		"{operate_tokens: {'a:b': " + aToken + "}}":                                                           "must not have a colon",
		"{read_tokens: {a: " + aToken + "}, operate_tokens: {b: " + aToken + "}}":                             "another name has the same token",
		"{read_tokens: {ann: " + aToken + "1}, operate_tokens: {ann: " + aToken + "2}}":                       "'ann' is a name in read_tokens, too: give each login a name of its own",
		"{operate_tokens: {ann: " + aToken + "}, users: {ann: secret}}":                                       "'ann' is a name in operate_tokens, too",
		"{read_tokens: {ann: " + aToken + "1}, operate_tokens: {ann: " + aToken + "2}, users: {ann: secret}}": "'ann' is a name in read_tokens and operate_tokens, too",
		"{users: {bob: secret}}":                                                                              "it is not a bcrypt hash",
		"{operators: [bob]}":                                                                                  "'bob' is none of the users, and there is no proxy_header",
		"{proxy_header: X-User}":                                                                              "any client could send this header",
		"{proxy_header: 'X User', proxies: [10.0.0.5]}":                                                       "is not the name of a header",
		"{proxy_header: cookie, proxies: [10.0.0.5]}":                                                         "a browser sets this header by itself",
		"{proxies: [10.0.0.5]}":                                                                               "proxies need proxy_header",
		"{proxy_header: X-User, proxies: [localhost]}":                                                        "'localhost' is not an address or a network",
		"{hosts: ['https://console.example']}":                                                                "is not the name of a host",
		"{payloads: all}":                                                                                     `"all" is not known here: write operate or read or none`,
		"{session: 1s}":                                                                                       "is out of bounds",
		"{token: x}":                                                                                          `the key "token" is not known`,
	} {
		_, err := parseAdmin(settings)
		require.ErrorContains(t, err, want, settings)
		require.NotContains(t, err.Error(), aToken)
	}
}

func TestExposed_NamesAProxyThatEveryAccountCanStandInFor(t *testing.T) {
	t.Parallel()
	for proxies, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "127.0.0.0/8": "127.0.0.0/8", "'::1'": "::1", "'10.0.0.5, 127.9.9.9'": "127.9.9.9", "0.0.0.0/0": "0.0.0.0/0", "10.0.0.5": "", "'fd00::/8'": "",
	} {
		for operators, exposed := range map[string]bool{"[dora]": want != "", "[]": false} {
			config, err := daemon.Parse("f.yaml", []byte("schema: "+schema+"\nadmin: {proxy_header: X-User, proxies: "+proxies+", operators: "+operators+"}\nprocesses:\n"+stdoutProcess), environment(nil), kinds)
			require.NoError(t, err, proxies)
			said := strings.Join(config.Exposed(), "\n")
			if exposed {
				require.Contains(t, said, "admin.proxies has "+want+", an address of this machine: each of its accounts can send X-User with the name of an operator, and decide: give no account")
			} else {
				require.NotContains(t, said, "admin.proxies", proxies+" "+operators)
			}
		}
	}
}

// What a daemon serves beside metrics and health has every other path, and a gate of its own.
func TestRun_ServesBesideMetrics(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, stdoutProcess)
	ended := make(chan struct{})
	serve := func(_ context.Context, i daemon.Inside) (http.Handler, func(), error) {
		require.True(t, i.Loopback())
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "here is "+r.Method+" "+r.URL.Path)
		}), func() { close(ended) }, nil
	}
	m := monitorAs(t, daemon.RunConfig{Config: config, Serve: serve})
	for path, want := range map[string]string{"/": "here is GET /", "/x/y": "here is GET /x/y", "/metrics/": "here is GET /metrics/"} {
		status, text := m.get(path)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, want, text)
	}
	m.answers("/healthz", http.StatusOK, "ok")
	response, err := http.Post(m.url+"/healthz", "text/plain", strings.NewReader(""))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	m.stop()
	<-ended
}

func TestRun_WithoutMoreToServeOtherPathsAreNotFound(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, stdoutProcess)
	m := monitor(t, config)
	status, _ := m.get("/")
	require.Equal(t, http.StatusNotFound, status)
}

func TestGrants_ADaemonWhoseConsoleDecidesNeedsTheRightsOfAnOperator(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, stdoutProcess)
	var without, with strings.Builder
	require.NoError(t, daemon.Grants(t.Context(), &without, daemon.GrantsConfig{Config: config, Role: "worker"}))
	config.Admin.OperateTokens = map[string]string{"alice": aToken}
	require.NoError(t, daemon.Grants(t.Context(), &with, daemon.GrantsConfig{Config: config, Role: "worker"}))
	require.NotContains(t, without.String(), "GRANT UPDATE (process_name, resolution")
	require.Contains(t, with.String(), "resolved_by")
}
