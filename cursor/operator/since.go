package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Passage describes what a cursor has passed since its sequence was at a number. The audit has the numbers only where
// they leapt. So the place of that number is Back records before Anchor, and not before Floor.
type Passage struct {
	// Row is the cursor's row.
	Row cursor.Row
	// Anchor is a position that the cursor had. It had delivered Back records of the source by then, since its sequence
	// was at the number: at most that many, as some may be gone.
	Anchor cursor.Position
	Back   int64
	// Floor is a position that the cursor had before that number, or at it. If Certain is false, it may also have had the number
	// before: there are fewer than Back records after Floor then.
	Floor   cursor.Position
	Certain bool

	moves  []Event // since Floor, the newest first
	all    []Event // moves, and those before
	number int64
}

// Replay is a dead letter that was replayed after the number.
type Replay struct {
	Event  Event
	Letter int64 // the number of the dead letter
	// At is where the cursor was. An event of an older version does not have it. Then At is the record's own position.
	At cursor.Position
}

// Stretch is a range of positions: those after one, up to and including another.
type Stretch struct{ After, UpTo cursor.Position }

// Keys of the detail of an event after which the sequence goes on from another number.
const (
	fromSequence = "from_sequence"
	toSequence   = "to_sequence"
)

// replay is the action of a dead letter that was delivered after all.
const replay = "dead_letter_replayed"

// moving are the actions of events that move a cursor or its sequence, or that are about a record that it passed.
var moving = strings.Join([]string{"create", "place", "rename", "seek", "skip", "retry", "restored", "promoted", "settled", "dead_letter", replay}, ",")

// Since looks up what the cursor of a process has passed since its sequence was at a number. It returns
// cursor.ErrUnknown if there is no cursor.
func (o *Operator) Since(ctx context.Context, process string, sequence int64) (Passage, error) {
	for range 3 {
		row, err := o.store.Look(ctx, process)
		if err != nil {
			return Passage{}, err
		}
		moves, err := o.events(ctx, process, moving, MaxHistory)
		if err != nil {
			return Passage{}, err
		}
		again, err := o.store.Look(ctx, process)
		if err != nil {
			return Passage{}, err
		}
		if again.Epoch == row.Epoch { // a move between the two looks begins an epoch
			return passage(row, moves, sequence), nil
		}
	}
	return Passage{}, o.db.Explain("look up a number of", process, fmt.Errorf("%w several times during the look: try again", cursor.ErrMoved))
}

// passage goes back from the row, leap by leap, to the place of a number.
func passage(row cursor.Row, moves []Event, sequence int64) Passage {
	p := Passage{Row: row, Anchor: row.Position}
	last := row.Sequence // at the anchor
	floor := func(at cursor.Position, certain bool, since int) Passage {
		p.Floor, p.Certain, p.Back, p.moves, p.all, p.number = at, certain, max(0, last-sequence), moves[:since], moves, sequence
		return p
	}
	for i, e := range moves {
		from, to, known := e.leap()
		switch {
		case e.Action == "create", e.Action == "place", e.From == cursor.Unplaced: // before it, nothing was delivered
			return floor(e.To, true, i)
		case !e.leaps(known):
			continue // its record has a number, as one that was delivered
		case !known:
			return floor(e.To, false, i)
		case sequence >= to:
			return floor(e.To, true, i)
		case sequence >= from:
			p.Anchor, last = e.From, sequence
			return floor(e.From, true, i+1)
		}
		p.Anchor, last = e.From, from
	}
	if len(moves) == MaxHistory {
		return floor(moves[len(moves)-1].To, false, len(moves))
	}
	return floor("", false, len(moves)) // a cursor that no command made
}

// leap returns the numbers before and after an event, and whether the event has them.
func (e Event) leap() (from, to int64, known bool) {
	var detail struct {
		From *int64 `json:"from_sequence"`
		To   *int64 `json:"to_sequence"`
	}
	if json.Unmarshal(e.Detail, &detail) != nil || detail.From == nil || detail.To == nil {
		return 0, 0, false
	}
	return *detail.From, *detail.To, true
}

// leaps reports whether the sequence may go on from another number after an event. Events of older versions have no
// numbers. Of those, a retry leaps if the process had halted over its server: then no record failed.
func (e Event) leaps(known bool) bool {
	if known {
		return true
	}
	switch e.Action {
	case "seek", "restored", "promoted", "settled", "rename":
		return true
	case "retry":
		var detail struct {
			Record *string `json:"record_id"`
		}
		return json.Unmarshal(e.Detail, &detail) == nil && detail.Record != nil && *detail.Record == ""
	default:
		return false
	}
}

// Passed is what a cursor has passed from a place on, up to where it is.
type Passed struct {
	// Delivered are the stretches whose records it delivered, in their order.
	Delivered []Stretch
	// Omitted are the events by which it passed records that it did not deliver. One of a replay is among them if it is not
	// known whether that came after the number.
	Omitted []Event
	// Replayed are the dead letters that were replayed after the number, in the order of their replays. Their records may be
	// from before the place, and are in no stretch.
	Replayed []Replay
}

// After returns what the cursor has passed. at is the place of the number. Records that come again after a seek back are
// not in it, as far as the cursor has not come to them.
func (p Passage) After(at cursor.Position) Passed {
	replayed := map[cursor.Position]bool{}
	for _, e := range p.moves {
		replayed[e.To] = replayed[e.To] || e.Action == replay
	}
	var passed Passed
	here, low := at, at
	pass := func(upTo cursor.Position) {
		s := Stretch{max(here, low), min(upTo, p.Row.Position)}
		if s.After < s.UpTo {
			passed.Delivered = append(passed.Delivered, s)
		}
	}
	for _, e := range slices.Backward(p.moves) {
		switch {
		case e.Action == "seek": // after the number: all that the cursor passes from here on was sent, also if it comes before the place
			pass(e.From)
			here, low = e.To, min(low, e.To)
		case e.Action == "skip" || e.Action == "dead_letter":
			pass(e.From)
			here = max(here, e.To) // it is before here if it was before the number
		default:
			continue
		}
		if e.From < e.To && (e.Action != "dead_letter" || !replayed[e.To]) {
			passed.Omitted = append(passed.Omitted, e)
		}
	}
	pass(p.Row.Position)
	passed.Delivered = merged(passed.Delivered)
	passed.Omitted = slices.DeleteFunc(passed.Omitted, func(e Event) bool {
		s := Stretch{max(e.From, low), min(e.To, p.Row.Position)}
		return s.After >= s.UpTo || covers(passed.Delivered, s)
	})
	p.addReplays(at, &passed)
	slices.SortStableFunc(passed.Omitted, func(a, b Event) int { return cmp.Compare(a.From, b.From) })
	return passed
}

// Fate is what became of a record that a cursor has passed.
type Fate struct {
	// Delivered: it was delivered in its turn.
	Delivered bool
	// Omitted is the event by which the cursor passed it without a delivery: a skip, a seek, or a dead letter. nil: none.
	Omitted *Event
	// Before: it comes before the place at which the cursor began.
	Before bool
}

// Fate returns what became of the record at a position that the cursor has passed. p is that since sequence 0. Without
// any of the three it is not known, as where the audit does not go back so far.
func (p Passage) Fate(at cursor.Position) (f Fate) {
	passed := p.After(p.Floor)
	for _, e := range passed.Omitted {
		if e.From < at && at <= e.To {
			f.Omitted = &e
		}
	}
	f.Delivered = f.Omitted == nil && inside(passed.Delivered, at)
	f.Before = !f.Delivered && f.Omitted == nil && p.Certain && at <= p.Floor
	return f
}

// addReplays adds the replays that a receiver at the number may lack, the oldest first. One whose record the cursor comes
// to again, or came to again, is in its turn. Before the replay, a worker that died may have sent more records than the
// cursor shows, but fewer than a SeekGap.
func (p Passage) addReplays(at cursor.Position, passed *Passed) {
	for i, e := range p.all {
		if e.Action == "create" || e.Action == "place" {
			break // before it, there was another cursor
		}
		if e.Action != replay || e.To > p.Row.Position || inside(passed.Delivered, e.To) {
			continue
		}
		var detail struct {
			Letter   int64           `json:"dead_letter"`
			Sequence *int64          `json:"sequence"`
			Position cursor.Position `json:"position"`
		}
		_ = json.Unmarshal(e.Detail, &detail)
		switch noted := detail.Sequence != nil; {
		case noted && *detail.Sequence+cursor.SeekGap > p.number:
			passed.Replayed = append(passed.Replayed, Replay{e, detail.Letter, detail.Position})
		case noted, i >= len(p.moves): // the receiver had it before the number
		case e.To > at: // it was put aside after the number
			passed.Replayed = append(passed.Replayed, Replay{e, detail.Letter, e.To})
		default:
			passed.Omitted = append(passed.Omitted, e)
		}
	}
	slices.Reverse(passed.Replayed)
}

// inside reports whether one of the stretches has a position.
func inside(all []Stretch, at cursor.Position) bool {
	return slices.ContainsFunc(all, func(s Stretch) bool { return s.After < at && at <= s.UpTo })
}

// merged sorts stretches, and joins those that touch.
func merged(all []Stretch) (joined []Stretch) {
	slices.SortFunc(all, func(a, b Stretch) int { return cmp.Compare(a.After, b.After) })
	for _, s := range all {
		if n := len(joined); n > 0 && s.After <= joined[n-1].UpTo {
			joined[n-1].UpTo = max(joined[n-1].UpTo, s.UpTo)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

func covers(all []Stretch, s Stretch) bool {
	return slices.ContainsFunc(all, func(one Stretch) bool { return one.After <= s.After && s.UpTo <= one.UpTo })
}
