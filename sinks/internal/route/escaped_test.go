package route_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

var errEmpty = errors.New("empty")

// angled makes what went through it visible.
func angled(value string) (string, error) {
	if value == "" {
		return "", errEmpty
	}
	return "<" + value + ">", nil
}

func TestEscaped_WhateverIsPrintedGoesThroughEscape(t *testing.T) {
	t.Parallel()
	d := processor.Delivery{Record: processor.Record{Table: "t", ID: "7", Key: "k", Type: "Made", Headers: map[string]string{"a": "A", "b": "B"}}}
	for text, want := range map[string]string{
		"/fixed":                                    "/fixed",
		"/{{.Key}}/{{lower .Type}}":                 "/<k>/<made>",
		`/{{"../x"}}{{printf "%s!" .Key}}`:          "/<../x><k!>",
		"{{$k := .Key}}{{$k}}{{$k = .ID}}{{$k}}":    "<k><7>",
		"{{if .Key}}a{{.Key}}{{else}}b{{end}}":      "a<k>",
		"{{if .Process}}a{{else}}{{.ID}}{{end}}":    "<7>",
		"{{with .Key}}{{.}}{{end}}":                 "<k>",
		"{{range $n, $v := .Headers}}{{$v}}{{end}}": "<A><B>",
		"{{len .Key}}{{true}}{{.DedupKey}}":         "<1><true><t/7>",
		`{{replace "k" "/" .Key | upper}}`:          "</>",
	} {
		r, err := route.Escaped(text, angled)
		require.NoError(t, err, text)
		got, err := r.Of(d)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	r, err := route.Escaped("/{{.Process}}", angled)
	require.NoError(t, err)
	_, err = r.Of(d)
	require.Equal(t, errEmpty, err, "with no word of the template's")
}

func TestEscaped_RefusesWhatItCannotSeeAndQuotesNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"canary{{.Payload}}":  "there are .Process, .Table, .ID, .Key, .Type, .Headers and .DedupKey",
		"canary{{.Key":        "unclosed action",
		"canary{{_escape 1}}": `function "_escape" not defined`,
		`canary{{define "a"}}{{.Key}}{{end}}{{template "a" .}}`: "no place",
		`canary{{block "a" .}}{{.Key}}{{end}}`:                  "no place",
		`{{if .Key}}canary{{template "" .}}{{end}}`:             "no place",
	} {
		_, err := route.Escaped(text, angled)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "canary", text)
	}
}

func TestSkeleton_IsTheTextOfAllBranches(t *testing.T) {
	t.Parallel()
	r, err := route.Escaped("/a/{{.Key}}{{if .Type}}/b{{lower .Type}}{{else}}/c{{end}}{{$x := 1}}?d", angled)
	require.NoError(t, err)
	require.Equal(t, "/a/X/bX/c?d", r.Skeleton("X"))
	require.False(t, strings.Contains(r.Skeleton(""), "{"))
}
