package desk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

func TestLetterOf_TheMarkOfAnAmendmentIsNoHeader(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	d := sit(t, config)
	l := d.letterOf(cursor.DeadLetter{Process: "a", RecordID: "1", Headers: map[string]string{cursor.HeaderAmended: "true", "tenant": "x"}, Payload: []byte("{}")}, Full)
	require.Equal(t, map[string]string{"tenant": "x"}, l.Record.Headers)
	require.True(t, l.Amended)
	require.Equal(t, "{}", l.Record.Payload)
	require.EqualValues(t, 2, *l.Record.PayloadBytes)
}

func TestGrouped_TheLargestGroupsHaveTheLettersThatAPageShows(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	d := sit(t, config)
	var open []cursor.DeadLetter
	put := func(letters int, err string) {
		for range letters {
			open = append(open, cursor.DeadLetter{ID: int64(len(open) + 1), Process: "a", Failure: cursor.Failure{Error: err}})
		}
	}
	for i := range MaxGroups + 9 {
		put(1, "cause "+strings.Repeat("x", i+1))
	}
	put(300, "the large one")
	list := d.grouped(open)
	require.Len(t, list.Groups, MaxGroups)
	require.Equal(t, 10, list.MoreGroups)
	require.Equal(t, 10, list.MoreGrouped)
	require.Equal(t, "the large one", list.Groups[0].Pattern)
	require.Len(t, list.Groups[0].IDs, 300)
	for _, g := range list.Groups {
		require.Len(t, g.FirstLetters, min(len(g.IDs), MaxLetters/MaxGroups))
		for i, l := range g.FirstLetters {
			require.EqualValues(t, g.IDs[i], l.ID, "a form decides about the letters that its group shows")
			require.Equal(t, g.Pattern, l.Failure.Error)
		}
	}

	few := d.grouped(open[len(open)-301:])
	require.Len(t, few.Groups, 2)
	require.Zero(t, few.MoreGroups)
	require.Len(t, few.Groups[0].FirstLetters, maxGroupLetters)
	require.Equal(t, fmt.Sprint(d.grouped(nil)), fmt.Sprint(Letters{Groups: []Group{}}))
}
