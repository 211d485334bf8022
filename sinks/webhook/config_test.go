package webhook

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNew_ReturnsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{
		URL: "ftp://h", Timeout: -1, Secret: "short", Format: "xml",
		Headers: map[string]string{"Host": "x", "Bad Name": "x"},
	})
	for _, fault := range []string{"url", "timeout", "secret", "format", `"Host"`, `"Bad Name"`} {
		require.ErrorContains(t, err, fault)
	}
}

func TestNew_RefusesURLsWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "canary", "/canary", "ftp://canary", "https://", "https:canary", "https:///canary",
		"https://ann:can/ary@host", "https://ann:canary%zz@host", "https://host/\x7fcanary", "https://canary:99999", "https://canary:0",
	} {
		_, err := New(Config{URL: url})
		require.ErrorContains(t, err, "url: ", url)
		require.NotContains(t, err.Error(), "canary", url)
		require.NotContains(t, err.Error(), "can/ary", url)
	}
}

func TestNew_RefusesHeadersThatAreSetElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"content-type", "Content-Length", "HOST", "idempotency-key", "X-Idempotency-Key", "Ordered-Anything", "webhook-id",
		"ce-id", "connection", "Keep-Alive", "TE", "trailer", "transfer-encoding", "Upgrade", "Expect", "Accept-Encoding",
		"proxy-authorization",
	} {
		_, err := New(Config{URL: "https://host", Headers: map[string]string{name: "canary"}})
		require.ErrorContains(t, err, "is set by the dispatcher", name)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestNew_RefusesHeadersThatWouldBreakTheRequest(t *testing.T) {
	t.Parallel()
	for fault, headers := range map[string]map[string]string{
		"is not a valid header name":                {"": "v"},
		`"a b" is not a valid header name`:          {"a b": "v"},
		`"a:" is not a valid header name`:           {"a:": "v"},
		`"é" is not a valid header name`:            {"é": "v"},
		"a value with control":                      {"X-Token": "canary\n"},
		`"X-A" is given twice`:                      {"x-a": "1", "X-A": "2"},
		"(a user in url, Authorization in headers)": {"authorization": "canary"},
	} {
		_, err := New(Config{URL: "https://u:p@host", Headers: headers})
		require.ErrorContains(t, err, fault)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestNew_AcceptsTheBoundsOfTimeout(t *testing.T) {
	t.Parallel()
	for timeout, ok := range map[time.Duration]bool{
		0: true, time.Millisecond: true, time.Hour: true, time.Millisecond - 1: false, time.Hour + 1: false,
	} {
		_, err := New(Config{URL: "https://host", Timeout: timeout})
		require.Equal(t, ok, err == nil, timeout)
	}
}

func TestPrinting_ShowsNoSecrets(t *testing.T) {
	t.Parallel()
	c := Config{
		URL: "https://ann:canary@host:8443/canary?canary=canary", Secret: "canarycanarycanarycanary",
		Headers: map[string]string{"X": "canary"},
	}
	s, err := New(c)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{c, &c, s} {
			require.Equal(t, "webhook to https://host:8443", fmt.Sprintf(verb, value))
		}
	}
}
