package webhook

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestDeliver_PathAndQueryAreMadeOfTheRecord(t *testing.T) {
	t.Parallel()
	d := delivery()
	d.Headers = map[string]string{"region": "eu west"}
	for template, want := range map[string]string{
		"/customers/{{.Key}}":                           "/customers/customer-7",
		"/in?type={{.Type}}&id={{.ID}}":                 "/in?type=booking.confirmed&id=42",
		"?key={{.DedupKey}}":                            "/?key=public.bookings%2F42%2F1767323045000006",
		"/{{.Headers.region}}/{{upper .Type}}":          "/eu%20west/BOOKING.CONFIRMED",
		"/a%2Fb/{{.ID}}{{if .Key}}?k={{.Key}}{{end}}":   "/a%2Fb/42?k=customer-7",
		"/in?none={{.Headers.none}}&dot=..{{.Process}}": "/in?none=&dot=..booking_sms",
		"/{{.DedupKey}}":                                "/public.bookings%2F42%2F1767323045000006",
	} {
		origin, requests := record(t)
		require.NoError(t, newSink(t, Config{URL: origin + template}).Deliver(t.Context(), d), template)
		require.Equal(t, want, requests()[0].uri)
		require.Equal(t, strings.TrimPrefix(origin, "http://"), requests()[0].host)
	}
}

// evil are values that mean something to a path, a query or a host.
var evil = []string{
	"..", ".", "../../admin", "..\\..\\admin", "a/../../../admin", "/", "//evil.example/x", "\\\\evil.example", "%2e%2e%2fadmin", "%2F..%2F",
	"?admin=1", "#", "a?b#c", "a&admin=1", "@evil.example", ":8080", "https://evil.example/", " ", "\r\nHost: evil.example", "\x00", "\x01",
	"..;/admin", "é", "\xff", "...", "%", "{{.ID}}", ".%00.",
	"%2E", "%252E", ".%2E/.%2e\\..",
}

func TestDeliver_NoRecordLeavesThePathOrReachesTheHost(t *testing.T) {
	t.Parallel()
	origin, requests := record(t)
	inPath := newSink(t, Config{URL: origin + "/customers/{{.Key}}/in"})
	inQuery := newSink(t, Config{URL: origin + "/in?key={{.Key}}&fixed=1"})
	for i, value := range evil {
		d := delivery()
		d.Key = value
		require.NoError(t, inPath.Deliver(t.Context(), d), "%q", value)
		require.NoError(t, inQuery.Deliver(t.Context(), d), "%q", value)
		requireBelow(t, requests()[2*i].uri, "/customers/", "/in", value)
		query, err := url.ParseRequestURI(requests()[2*i+1].uri)
		require.NoError(t, err)
		require.Equal(t, "/in", query.Path)
		require.Equal(t, url.Values{"key": {value}, "fixed": {"1"}}, query.Query())
		require.Equal(t, strings.TrimPrefix(origin, "http://"), requests()[2*i+1].host)
	}
}

// requireBelow holds a request's path to its prefix and its suffix with a value
// between them, as it is and as receivers see it that decode it, take a backslash
// for a slash, or clean it.
func requireBelow(t *testing.T, uri, prefix, suffix, value string) {
	t.Helper()
	require.NotContains(t, uri, "?")
	require.NotContains(t, uri, "#")
	require.False(t, strings.HasPrefix(uri, "//"), uri)
	raw, ok := strings.CutPrefix(uri, prefix)
	require.True(t, ok, uri)
	raw, ok = strings.CutSuffix(raw, suffix)
	require.True(t, ok, uri)
	require.NotContains(t, raw, "/")
	require.NotContains(t, raw, ";")
	u, err := url.ParseRequestURI(uri)
	require.NoError(t, err)
	for _, seen := range []string{uri, u.Path, strings.ReplaceAll(u.Path, `\`, "/")} {
		require.True(t, strings.HasPrefix(path.Clean(seen)+"/", prefix), "%q of %q", seen, value)
		for segment := range strings.SplitSeq(seen, "/") {
			require.NotContains(t, []string{".", ".."}, segment, "%q of %q", seen, value)
		}
	}
	back, err := url.PathUnescape(raw)
	require.NoError(t, err)
	require.Equal(t, decodedOnce(value), back)
}

// segmentStart is where full stops are encoded twice.
var segmentStart = regexp.MustCompile(`(^|[/\\])\.+`)

// decodedOnce is what one round of decoding makes of a value in a path.
func decodedOnce(value string) string {
	return segmentStart.ReplaceAllStringFunc(value, func(start string) string { return strings.ReplaceAll(start, ".", "%2E") })
}

func TestDeliver_AnEmptyValueInAPathIsPermanent(t *testing.T) {
	t.Parallel()
	origin, requests := record(t)
	d := delivery()
	d.Key = ""
	for template, fault := range map[string]string{
		"/customers/{{.Key}}":                         "a value in its path is empty",
		"/{{.Key}}/{{.Type}}":                         "a value in its path is empty",
		"/a/.{{.Key}}./b":                             "a value in its path is empty",
		"/a/.{{if .ID}}.{{else}}x{{end}}/{{.ID}}":     "would lead elsewhere",
		"/{{if .ID}}{{else}}x{{end}}/{{.ID}}":         "would lead elsewhere",
		"/{{if .Key}}{{.Key}}{{else}}..{{end}}/{{1}}": "would lead elsewhere",
	} {
		s, err := New(Config{URL: origin + template})
		require.NoError(t, err, template)
		err = s.Deliver(t.Context(), d)
		require.ErrorContains(t, err, fault, template)
		require.True(t, processor.IsPermanent(err), template)
	}
	require.Empty(t, requests())
}

func TestNew_RefusesTemplatesWhereTheyHaveNoPlace(t *testing.T) {
	t.Parallel()
	for raw, fault := range map[string]string{
		"https://{{.Key}}.example/canary":                  "before its path",
		"https://host{{.Key}}/canary":                      "before its path",
		"https://ann:{{.Key}}@host/canary":                 "before its path",
		"https://host:{{.Key}}/canary":                     "before its path",
		"{{.Key}}://host/canary":                           "before its path",
		"{{.Key}}/canary":                                  "before its path",
		"https:/host/{{.Key}}/canary":                      "before its path",
		"ftp://host/canary/{{.Key}}":                       "neither http",
		"https://host/canary/{{.Nope}}":                    "there are .Process",
		"https://host/canary/{{.Key":                       "unclosed action",
		"https://host/canary#{{.Key}}":                     "fragment",
		"https://host/can ary/{{.Key}}":                    "percent-encoded",
		"https://host/canary/%zz{{.Key}}":                  "percent-encoded",
		"https://host/canary?a b={{.Key}}":                 "percent-encoded",
		"https://host/canary/../{{.Key}}":                  ". or ..",
		"https://host//canary/{{.Key}}":                    "//",
		"https://host/canary\x01{{.Key}}":                  "percent-encoded",
		`https://host/{{define "a"}}canary{{end}}{{.Key}}`: "no place",
	} {
		_, err := New(Config{URL: raw})
		require.ErrorContains(t, err, fault, raw)
		require.ErrorContains(t, err, "url: ", raw)
		require.NotContains(t, err.Error(), "canary", raw)
	}
}

// Whatever a record holds, its request goes to the host of the configuration, to a
// path below the one that is written there, with the parameters written there.
func FuzzTarget(f *testing.F) {
	for _, value := range evil {
		f.Add(value, "made", "k")
		f.Add("k", value, value)
	}
	at, err := parseTarget("https://user:password@receiver.example/customers/{{.Key}}/in-{{lower .Type}}.d?id={{.ID}}&t={{.Type}}")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, key, typ, id string) {
		d := delivery()
		d.Key, d.Type, d.ID = key, typ, id
		u, err := at.of(d)
		if key == "" || typ == "" {
			require.True(t, processor.IsPermanent(err))
			return
		}
		require.NoError(t, err)
		require.Equal(t, "receiver.example", u.Host)
		require.Equal(t, "user:password", u.User.String())
		require.Equal(t, "https", u.Scheme)

		var wire bytes.Buffer
		require.NoError(t, (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host}).Write(&wire))
		r, err := http.ReadRequest(bufio.NewReader(&wire))
		require.NoError(t, err)
		require.Equal(t, "receiver.example", r.Host)
		require.Empty(t, r.URL.Host)
		require.Equal(t, url.Values{"id": {id}, "t": {typ}}, r.URL.Query())
		uri, query, _ := strings.Cut(r.RequestURI, "?")
		require.NotContains(t, query, "#")
		_, last, _ := strings.Cut(strings.TrimPrefix(uri, "/customers/"), "/")
		requireBelow(t, uri, "/customers/", "/"+last, key)
		requireBelow(t, "/customers/x/"+last, "/customers/x/in-", ".d", strings.ToLower(typ))
	})
}
