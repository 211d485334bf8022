package shadow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

func TestDifferences_NamesWhatDiffersAndNoValue(t *testing.T) {
	t.Parallel()
	same := func() sinks.Call {
		return sinks.Call{Target: "topic a", Headers: map[string]string{"x": "1", "y": ""}, Body: []byte(`{"a": {"b": [1, 2.0]}, "c": null}`), Hidden: "token"}
	}
	require.Empty(t, differences(same(), same()))
	for want, change := range map[string]func(*sinks.Call){
		"target":                func(c *sinks.Call) { c.Target = "topic CANARY" },
		"header x":              func(c *sinks.Call) { c.Headers["x"] = "CANARY" },
		"header y":              func(c *sinks.Call) { delete(c.Headers, "y") },
		"header z":              func(c *sinks.Call) { c.Headers["z"] = "" },
		"body.a.b[1]":           func(c *sinks.Call) { c.Body = []byte(`{"a": {"b": [1, 2]}, "c": null}`) },
		"body.a.b":              func(c *sinks.Call) { c.Body = []byte(`{"a": {"b": [1, 2.0, "CANARY"]}, "c": null}`) },
		"body.c":                func(c *sinks.Call) { c.Body = []byte(`{"a": {"b": [1, 2.0]}}`) },
		"body.a,body.d":         func(c *sinks.Call) { c.Body = []byte(`{"a": "CANARY", "c": null, "d": "CANARY"}`) },
		"body":                  func(c *sinks.Call) { c.Body = []byte(`"CANARY"`) },
		Unstored:                func(c *sinks.Call) { c.Hidden = "CANARY" },
		"body, from byte 4 on":  func(c *sinks.Call) { c.Body = []byte(`{"a"  : {"b": [1, 2.0]}, "c": null}`) },
		"body, from byte 33 on": func(c *sinks.Call) { c.Body = append(c.Body, " CANARY"...) },
		"body, from byte 0 on":  func(c *sinks.Call) { c.Body = nil },
	} {
		other := same()
		change(&other)
		for _, got := range [][]string{differences(same(), other), differences(other, same())} {
			require.True(t, strings.HasPrefix(strings.Join(got, ","), want), "%s: %v", want, got)
			require.NotContains(t, strings.Join(got, ","), "CANARY")
		}
	}
}

// The full address is compared as well: where the target differs, it always does.
func TestDifferences_AnotherTargetIsNamedOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"target"}, differences(sinks.Call{Target: "POST https://a", Hidden: "https://a"}, sinks.Call{Target: "POST https://b", Hidden: "https://b"}))
}

func TestDifferences_AreBounded(t *testing.T) {
	t.Parallel()
	a, b := sinks.Call{Headers: map[string]string{}}, sinks.Call{}
	for range 100 {
		a.Headers[strings.Repeat("h", len(a.Headers)+1000)] = "x"
	}
	a.Body = []byte(strings.Repeat("[", 5000) + "1" + strings.Repeat("]", 5000))
	b.Body = []byte(strings.Repeat("[", 5000) + "2" + strings.Repeat("]", 5000))
	got := differences(a, b)
	require.Len(t, got, maxNamed+1)
	require.Equal(t, "and more", got[maxNamed])
	require.Less(t, len(strings.Join(got, "")), 20_000)
	require.Len(t, inBody(a.Body, b.Body), 1)
}
