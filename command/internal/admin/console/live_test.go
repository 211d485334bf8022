package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

func rowsOf(n int, content string) []part {
	var all []part
	for i := range n {
		all = append(all, text("rows", fmt.Sprint("r", i), content))
	}
	return all
}

func ids(parts []message) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.id)
	}
	return all
}

func TestNews_OnlyWhatHasChangedIsSent(t *testing.T) {
	t.Parallel()
	m := newMemory()
	require.Len(t, m.news(rowsOf(3, "a")), 3)
	require.Empty(t, m.news(rowsOf(3, "a")))
	changed := rowsOf(3, "a")
	changed[1] = text("rows", "r1", "b")
	require.Equal(t, []string{"r1"}, ids(m.news(changed)))
}

func TestNews_WhatThePageShowsIsNotSentAgain(t *testing.T) {
	t.Parallel()
	m := newMemory()
	shown := rowsOf(3, "a")
	for i := range shown {
		shown[i].shown = true
	}
	require.Empty(t, m.news(shown))
	require.Len(t, m.news(rowsOf(3, "b")), 3)
}

// If all rows of a large fleet change at each look, each of them still has its turn.
func TestNews_RowsTakeTurns(t *testing.T) {
	t.Parallel()
	m := newMemory()
	var sent []string
	for round := range 9 {
		fresh := m.news(rowsOf(1000, fmt.Sprint(round)))
		require.Len(t, fresh, maxRows)
		sent = append(sent, ids(fresh)...)
	}
	slices.Sort(sent)
	require.Len(t, slices.Compact(sent), 1000)
}

func TestMessages_ALineOfATextIsALineOfData(t *testing.T) {
	t.Parallel()
	stream := messages([]message{{"parts", "a", "<p>\nevent: x\n</p>"}, {"rows", "b", "<tr>"}})
	require.Equal(t, "event: parts\ndata: <p>\ndata: event: x\ndata: </p>\n\nevent: rows\ndata: <tr>\n\n", stream)
	for line := range strings.Lines(stream) {
		require.True(t, line == "\n" || strings.HasPrefix(line, "data: ") || line == "event: parts\n" || line == "event: rows\n", line)
	}
}

func TestNews_ARowIsNotMadeWhileItsProcessStays(t *testing.T) {
	t.Parallel()
	m := newMemory()
	seconds, made := 61.0, 0
	row := func() []part {
		l := desk.Line{Process: "a", State: "running", Waiting: &desk.Waiting{Records: 1, Seconds: &seconds}}
		return []part{{event: "rows", id: "a", basis: basisOf(l), make: func() string { made++; return took(seconds) }}}
	}
	require.Len(t, m.news(row()), 1)
	require.Empty(t, m.news(row()))
	require.Equal(t, 1, made)
	seconds = 61.2 // which reads the same
	require.Empty(t, m.news(row()))
	require.Equal(t, 2, made)
	seconds = 300
	require.Len(t, m.news(row()), 1)
}
