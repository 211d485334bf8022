package sinktest

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// renders: the call that a sink renders is the one that its receiver gets. A sink that has delivered, and one that never
// connects, render the same.
func renders(t *testing.T, s Subject) {
	renderer, ok := rendererOf(s.Sink)
	if !ok {
		t.Log("the sink renders no calls")
		return
	}
	ds := Deliveries(1, 3)
	ds[1].Headers = maps.Clone(posing)
	ds[1].Headers["tenant"] = "blue"
	before := rendered(t, renderer, ds)
	Delivered(t, s.Sink, ds)
	require.Equal(t, before, rendered(t, renderer, ds))

	got := s.Received(t)
	require.Len(t, got, len(ds))
	for i, call := range before {
		require.NotEmpty(t, call.Target)
		require.NotContains(t, call.Target, "secret-password")
		if s.Header == nil {
			require.Equal(t, got[i], lineOf(t, call.Body))
			continue
		}
		require.Equal(t, got[i].Payload, string(call.Body))
		for name, value := range call.Headers {
			require.NotEqual(t, poses, value, name)
			require.Equal(t, s.Header(t, name)[i], value, name)
		}
	}
	if s.Header != nil {
		requireContract(t, before)
	}
}

// requireContract requires that no header of the contract is left out.
func requireContract(t *testing.T, calls []sinks.Call) {
	t.Helper()
	of := func(i int, name string) string {
		for spelled, value := range calls[i].Headers {
			if strings.EqualFold(spelled, name) {
				return value
			}
		}
		return ""
	}
	for name, want := range map[string][]string{
		"ordered-version":   {"1", "1", "1"},
		"ordered-process":   {"sms", "sms", "sms"},
		"ordered-origin":    {"here", "here", "here"},
		"ordered-sequence":  {"1", "2", "3"},
		"ordered-epoch":     {"3", "3", "3"},
		"ordered-attempt":   {"1", "1", "1"},
		"ordered-position":  {string(position(1)), string(position(2)), string(position(3))},
		"ordered-key":       {"customer", "customer", "customer"},
		"ordered-type":      {"made", "made", "made"},
		"content-type":      {"application/json", "application/json", "application/json"},
		"ordered-signature": {"", "", ""},
		"authorization":     {"", "", ""},
	} {
		require.Equal(t, want, []string{of(0, name), of(1, name), of(2, name)}, name)
	}
}

func rendered(t *testing.T, r sinks.Renderer, ds []processor.Delivery) (calls []sinks.Call) {
	t.Helper()
	for _, d := range ds {
		call, err := r.Render(d)
		require.NoError(t, err)
		calls = append(calls, call)
	}
	return calls
}

func rendererOf(sink processor.BatchSink) (sinks.Renderer, bool) {
	var made any = sink
	if o, ok := sink.(one); ok {
		made = o.Sink
	}
	r, ok := made.(sinks.Renderer)
	return r, ok
}

// lineOf reads the line of a record: see package jsonline.
func lineOf(t *testing.T, line []byte) Message {
	t.Helper()
	var l struct {
		DedupKey string          `json:"dedup_key"`
		Payload  json.RawMessage `json:"payload"`
	}
	require.NoError(t, json.Unmarshal(line, &l))
	require.True(t, bytes.HasSuffix(line, []byte("}\n")))
	return Message{l.DedupKey, string(l.Payload)}
}
