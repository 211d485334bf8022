package operator_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// course is a cursor that moves over rows 1, 2, 3 …, and what it leaves in the audit.
type course struct {
	at       int
	sequence int64
	events   []operator.Event // the newest first
	sent     []send
	places   []place
	aside    map[int]bool // rows whose dead letter is open
}

// send is a record that was delivered.
type send struct {
	row      int
	sequence int64 // of the cursor, after it
	replay   bool  // of a dead letter, out of its turn
}

// place is where the cursor was at a number.
type place struct {
	sequence int64
	at       int
}

func position(row int) cursor.Position {
	if row == 0 {
		return ""
	}
	return cursor.Position(fmt.Sprintf("int:%020d", row))
}

func (c *course) note(action string, to int, detail map[string]any) {
	text, _ := json.Marshal(detail)
	c.events = slices.Insert(c.events, 0, operator.Event{ID: int64(len(c.events) + 1), Action: action, From: position(c.at), To: position(to), Detail: text})
}

func (c *course) leap(action string, to int, gap int64, known bool) {
	detail := map[string]any{"from_state": "running"}
	if known {
		detail["from_sequence"], detail["to_sequence"] = c.sequence, c.sequence+gap
	}
	c.note(action, to, detail)
	c.at, c.sequence = to, c.sequence+gap
}

func (c *course) replay(row int, known bool) {
	detail := map[string]any{"dead_letter": row}
	if known {
		detail["sequence"], detail["position"] = c.sequence, position(c.at)
	}
	c.note("dead_letter_replayed", row, detail)
	c.events[0].From = ""
}

// move draws one thing that happens to a cursor.
func (c *course) move(t *rapid.T, rows int, known bool) {
	next := min(c.at+1, rows)
	switch rapid.SampledFrom([]string{"deliver", "deliver", "deliver", "deliver", "skip", "dead_letter", "replay", "seek", "promoted", "restored", "retry", "displaced"}).Draw(t, "move") {
	case "deliver":
		if c.at < rows {
			c.at, c.sequence = next, c.sequence+1
			c.sent = append(c.sent, send{c.at, c.sequence, false})
		}
	case "skip", "dead_letter":
		if c.at < rows {
			action := rapid.SampledFrom([]string{"skip", "dead_letter"}).Draw(t, "action")
			c.note(action, next, nil)
			c.at, c.sequence = next, c.sequence+1
			if action == "dead_letter" {
				c.aside[next] = true
			}
		}
	case "replay":
		for row := range rows + 1 {
			if c.aside[row] {
				c.replay(row, known)
				c.sent = append(c.sent, send{row, c.sequence, true})
				delete(c.aside, row)
				break
			}
		}
	case "seek":
		c.leap("seek", rapid.IntRange(0, rows).Draw(t, "to"), cursor.SeekGap, known)
	case "promoted":
		c.leap("promoted", c.at, cursor.HistoryGap, known)
	case "restored":
		c.leap("restored", c.at, cursor.HistoryGap, known)
	case "retry":
		c.note("retry", c.at, map[string]any{"record_id": "7"})
	case "displaced":
		detail := map[string]any{"record_id": ""}
		if known {
			detail["from_sequence"], detail["to_sequence"] = c.sequence, c.sequence+cursor.HistoryGap
		}
		c.note("retry", c.at, detail)
		c.sequence += cursor.HistoryGap
	}
	c.places = append(c.places, place{c.sequence, c.at})
}

// placeOf is where the cursor last was at a number, or before it.
func (c *course) placeOf(sequence int64) int {
	at := 0
	for _, p := range c.places {
		if p.sequence <= sequence {
			at = p.at
		}
	}
	return at
}

// effects are those of a receiver that has got the first sends, each record once. Rows that the cursor comes to again do
// not count.
func (c *course) effects(sends []send) (rows []int) {
	for _, s := range sends {
		if !slices.Contains(rows, s.row) && s.row <= c.at {
			rows = append(rows, s.row)
		}
	}
	return rows
}

// had is what a receiver that was at a number had got. A replay right after that number may have come or not.
func (c *course) had(sequence int64) []send {
	for i, s := range c.sent {
		if s.sequence > sequence || s.replay && s.sequence == sequence {
			return c.sent[:i]
		}
	}
	return c.sent
}

// answer is what a receiver gets that asks.
func (c *course) answer(passed operator.Passed) (all []send) {
	replayed := passed.Replayed
	due := func(at cursor.Position) {
		for len(replayed) > 0 && replayed[0].At <= at {
			all = append(all, send{row: int(replayed[0].Letter), replay: true})
			replayed = replayed[1:]
		}
	}
	for row := range c.at + 1 {
		if slices.ContainsFunc(passed.Delivered, func(s operator.Stretch) bool { return s.After < position(row) && position(row) <= s.UpTo }) {
			due(position(row - 1))
			all = append(all, send{row: row})
		}
	}
	due("~")
	return all
}

func draw(t *rapid.T, known bool) (course, int64, int) {
	rows := rapid.IntRange(1, 12).Draw(t, "rows")
	c := course{aside: map[int]bool{}}
	c.note("create", 0, nil)
	c.places = append(c.places, place{0, 0})
	for range rapid.IntRange(0, 25).Draw(t, "moves") {
		c.move(t, rows, known)
	}
	at := rapid.SampledFrom(c.places).Draw(t, "place")
	return c, max(0, at.sequence+rapid.Int64Range(-2, 2).Draw(t, "off")), rows
}

// recent is what table.Source.Recent returns if no row is gone.
func recent(p operator.Passage) (at cursor.Position, enough bool) {
	if p.Back == 0 {
		return p.Anchor, true
	}
	for row := 0; ; row++ {
		if position(row) == p.Anchor {
			at := row - int(min(p.Back, 1_000_000))
			if at >= 0 && position(at) >= p.Floor {
				return position(at), true
			}
			return p.Floor, false
		}
	}
}

// A receiver that has lost what came after a number gets all of it, in the order in which it came, and nothing that was
// never sent to it. So its effects are those of a receiver that lost nothing.
func TestSince_FindsWhatWasDeliveredAfterANumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, sequence, rows := draw(t, true)
		p := operator.PassageOf(cursor.Row{Position: position(c.at), Sequence: c.sequence}, c.events, sequence)
		at, enough := recent(p)
		require.True(t, enough || p.Certain)
		require.Equal(t, position(c.placeOf(sequence)), at)

		passed := p.After(at)
		answer := c.answer(passed)
		got, sent := map[int]bool{}, map[int]bool{}
		for _, s := range answer {
			got[s.row] = true
		}
		for _, s := range c.sent {
			sent[s.row] = true
		}
		for row := range got {
			require.Contains(t, sent, row, "it was never sent")
		}
		for row := range rows + 1 {
			passedBy := position(row) > at && row <= c.at
			named := slices.ContainsFunc(passed.Omitted, func(e operator.Event) bool { return e.From < position(row) && position(row) <= e.To })
			require.True(t, !passedBy || got[row] || named, "row %d is neither delivered nor named", row)
		}
		want, effects := c.effects(c.sent), c.effects(slices.Concat(c.had(sequence), answer))
		if slices.ContainsFunc(c.events, func(e operator.Event) bool { return e.Action == "seek" }) {
			slices.Sort(want) // what came again came first in another place
			slices.Sort(effects)
		}
		require.Equal(t, want, effects)
		require.True(t, slices.IsSortedFunc(passed.Delivered, func(a, b operator.Stretch) int { return cmp.Compare(a.After, b.After) }))
	})
}

// The audit of an older version has no numbers: then a number is found, or is not known. It is never another place.
func TestSince_ANumberThatOlderEventsDoNotShowIsNotGuessed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, sequence, _ := draw(t, false)
		p := operator.PassageOf(cursor.Row{Position: position(c.at), Sequence: c.sequence}, c.events, sequence)
		if at, enough := recent(p); enough || p.Certain {
			require.Equal(t, position(c.placeOf(sequence)), at)
		}
	})
}

// The numbers of a leap are in the audit.
func TestSince_KnowsTheNumbersOfASeekAPromotionAndARename(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "one")
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), position(3), 3))
	lease.Release()
	o := operator.New(s)
	_, err := o.Seek(t.Context(), "sms", position(1), cursor.Decision{Actor: "alice", Reason: "x"})
	require.NoError(t, err)
	_, err = o.Restored(t.Context(), "sms", cursor.Decision{Actor: "alice", Reason: "x"})
	require.NoError(t, err)
	_, err = o.Rename(t.Context(), "sms", "mail", cursor.Decision{Actor: "alice"})
	require.NoError(t, err)
	for sequence, want := range map[int64]operator.Passage{
		2:      {Anchor: position(3), Back: 1, Floor: "", Certain: true},
		3:      {Anchor: position(3), Back: 0, Floor: position(3), Certain: true},
		10_002: {Anchor: position(3), Back: 0, Floor: position(3), Certain: true},
		10_003: {Anchor: position(1), Back: 0, Floor: position(1), Certain: true},
	} {
		got, err := o.Since(t.Context(), "mail", sequence)
		require.NoError(t, err)
		require.Equal(t, want, operator.Passage{Anchor: got.Anchor, Back: got.Back, Floor: got.Floor, Certain: got.Certain}, sequence)
	}
	_, err = o.Since(t.Context(), "sms", 0)
	require.ErrorIs(t, err, cursor.ErrUnknown)
}
