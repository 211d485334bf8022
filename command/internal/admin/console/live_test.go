package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func rowsOf(n int, text string) []part {
	var all []part
	for i := range n {
		all = append(all, part{event: "rows", id: fmt.Sprint("r", i), text: text})
	}
	return all
}

func ids(parts []part) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.id)
	}
	return all
}

func TestNews_OnlyWhatHasChangedIsSent(t *testing.T) {
	t.Parallel()
	m := memory{digests: map[string]uint64{}, sentAt: map[string]int{}}
	require.Len(t, m.news(rowsOf(3, "a")), 3)
	require.Empty(t, m.news(rowsOf(3, "a")))
	changed := rowsOf(3, "a")
	changed[1].text = "b"
	require.Equal(t, []string{"r1"}, ids(m.news(changed)))
}

func TestNews_WhatThePageShowsIsNotSentAgain(t *testing.T) {
	t.Parallel()
	m := memory{digests: map[string]uint64{}, sentAt: map[string]int{}}
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
	m := memory{digests: map[string]uint64{}, sentAt: map[string]int{}}
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
	text := messages([]part{{event: "parts", id: "a", text: "<p>\nevent: x\n</p>"}, {event: "rows", id: "b", text: "<tr>"}})
	require.Equal(t, "event: parts\ndata: <p>\ndata: event: x\ndata: </p>\n\nevent: rows\ndata: <tr>\n\n", text)
	for line := range strings.Lines(text) {
		require.True(t, line == "\n" || strings.HasPrefix(line, "data: ") || line == "event: parts\n" || line == "event: rows\n", line)
	}
}
