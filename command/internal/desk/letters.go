package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// LettersAsk chooses dead letters.
type LettersAsk struct {
	// Process is the only one; "" is all.
	Process string
	// Error is a text that their errors contain; "" is any. It needs Process.
	Error string
	// Resolved includes those that were replayed or discarded.
	Resolved bool
	// Limit is at most MaxLetters; 0 is MaxLetters.
	Limit int
}

const (
	// MaxLetters bounds one list of dead letters.
	MaxLetters = 1000
	// MaxGroups bounds the groups of one list.
	MaxGroups = 50
	// maxGroupLetters bounds the letters of one group that a page shows.
	maxGroupLetters = 100
)

// Letters are dead letters.
type Letters struct {
	// Groups are open dead letters of one process whose errors are alike, the largest group first. There are at most
	// MaxGroups.
	Groups []Group `json:"groups"`
	// MoreGroups is how many groups come after Groups, and MoreGrouped how many dead letters those have.
	MoreGroups  int `json:"more_groups"`
	MoreGrouped int `json:"more_grouped"`
	// Letters are in the order of their processes and positions.
	Letters []Letter `json:"letters"`
	// More reports that there are more than the list has.
	More bool `json:"more"`
}

// Group are dead letters whose errors are alike.
type Group struct {
	Process string `json:"process"`
	// Pattern is their error, with # in place of ids and numbers, and … in place of quoted text.
	Pattern string    `json:"pattern"`
	Class   string    `json:"class"`
	First   time.Time `json:"first_at"`
	Last    time.Time `json:"last_at"`
	// IDs are in the order of their positions.
	IDs []IDText `json:"ids"`
	// FirstLetters are the dead letters of the first IDs. The groups of one list have at most MaxLetters of them in all.
	FirstLetters []Letter `json:"-"`
}

// IDText is a number of 64 bits that is a string in JSON.
type IDText int64

// Letter is one dead letter.
type Letter struct {
	ID         int64      `json:"id,string"`
	Process    string     `json:"process"`
	At         time.Time  `json:"at"`
	Sequence   int64      `json:"sequence,string"`
	Record     Record     `json:"record"`
	Failure    Failure    `json:"failure"`
	Resolution string     `json:"resolution"` // open, replayed or discarded
	ResolvedAt *time.Time `json:"resolved_at"`
	ResolvedBy string     `json:"resolved_by"`
	Reason     string     `json:"reason"`
	// Amended reports that the payload is the one that an operator had given to the record.
	Amended bool `json:"amended"`
}

// Letters lists dead letters, without headers and payloads.
func (d *Desk) Letters(ctx context.Context, ask LettersAsk) (list Letters, err error) {
	limit := min(cmp.Or(max(ask.Limit, 0), MaxLetters), MaxLetters)
	if ask.Error != "" && ask.Process == "" {
		return list, wrong("a text of the error needs the name of the process")
	}
	err = d.question(ctx, func(ctx context.Context) error {
		op := d.asking.Operator()
		open, err := d.open(ctx, op, ask)
		if err != nil {
			return err
		}
		list = d.grouped(open)
		all, more := open, false
		if ask.Resolved {
			if all, more, err = resolvedToo(ctx, op, ask); err != nil {
				return err
			}
		}
		list.Letters, list.More = []Letter{}, more || len(all) > limit
		for _, l := range all[:min(len(all), limit)] {
			list.Letters = append(list.Letters, d.letterOf(l, Masked))
		}
		return nil
	})
	return list, err
}

// open returns the open dead letters that were asked for, by process and position.
func (d *Desk) open(ctx context.Context, op *operator.Operator, ask LettersAsk) (open []cursor.DeadLetter, err error) {
	if ask.Process != "" {
		return op.OpenDeadLetters(ctx, ask.Process, ask.Error, daemon.MaxDeadLetters)
	}
	open, err = op.DeadLetters(ctx, "", false, daemon.MaxDeadLetters)
	slices.SortFunc(open, func(x, y cursor.DeadLetter) int {
		return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.Position, y.Position), cmp.Compare(x.ID, y.ID))
	})
	return open, err
}

// resolvedToo returns dead letters that were asked for, open or not, as they were put aside. more reports that there may
// be others.
func resolvedToo(ctx context.Context, op *operator.Operator, ask LettersAsk) (all []cursor.DeadLetter, more bool, err error) {
	all, err = op.DeadLetters(ctx, ask.Process, true, daemon.MaxDeadLetters)
	more = len(all) == daemon.MaxDeadLetters
	return slices.DeleteFunc(all, func(l cursor.DeadLetter) bool { return !strings.Contains(l.Failure.Error, ask.Error) }), more, err
}

// grouped is the list of the groups of open dead letters.
func (d *Desk) grouped(open []cursor.DeadLetter) Letters {
	groups := d.groups(open)
	list := Letters{Groups: []Group{}}
	shown := min(len(groups), MaxGroups)
	for _, g := range groups[:shown] {
		for _, l := range g.letters[:min(len(g.letters), maxGroupLetters, MaxLetters/shown)] {
			g.FirstLetters = append(g.FirstLetters, d.letterOf(l, Masked))
		}
		list.Groups = append(list.Groups, g.Group)
	}
	for _, g := range groups[shown:] {
		list.MoreGroups++
		list.MoreGrouped += len(g.letters)
	}
	return list
}

// group is a Group with all its dead letters.
type group struct {
	Group
	letters []cursor.DeadLetter
}

// groups puts open dead letters together whose errors are alike, the largest group first.
func (d *Desk) groups(open []cursor.DeadLetter) []*group {
	type kind struct{ process, pattern, class string }
	all := map[kind]*group{}
	for _, l := range open {
		k := kind{l.Process, pattern(d.board.cleanText(l.Failure.Error)), string(l.Failure.Class)}
		g := all[k]
		if g == nil {
			g = &group{Group: Group{Process: k.process, Pattern: k.pattern, Class: k.class, First: l.At.UTC(), Last: l.At.UTC()}}
			all[k] = g
		}
		if l.At.Before(g.First) {
			g.First = l.At.UTC()
		}
		if l.At.After(g.Last) {
			g.Last = l.At.UTC()
		}
		g.IDs = append(g.IDs, IDText(l.ID))
		g.letters = append(g.letters, l)
	}
	return slices.SortedFunc(maps.Values(all), func(x, y *group) int {
		return cmp.Or(cmp.Compare(len(y.IDs), len(x.IDs)), cmp.Compare(x.Process, y.Process), cmp.Compare(x.Pattern, y.Pattern), cmp.Compare(x.Class, y.Class))
	})
}

// Letter returns one dead letter.
func (d *Desk) Letter(ctx context.Context, id int64, sight Sight) (letter Letter, err error) {
	err = d.question(ctx, func(ctx context.Context) error {
		found, err := d.asking.Operator().DeadLetter(ctx, id)
		letter = d.letterOf(found, sight)
		return err
	})
	return letter, err
}

func (d *Desk) letterOf(l cursor.DeadLetter, sight Sight) Letter {
	f := failureOf(l.Failure)
	f.RecordID, f.Position, f.Error = l.RecordID, string(l.Position), d.board.cleanText(l.Failure.Error)
	f.Last = l.At.UTC() // it was put aside right after its last attempt, and the table keeps no other time of that
	record := processor.OfLetter(l)
	record.Payload = record.Payload[:min(len(record.Payload), MaxPayload)]
	r := recordOf(table.Shown{Record: record, Bytes: int64(len(l.Payload)), Withheld: l.Withheld}, cursor.Row{Process: l.Process})
	return Letter{
		ID: l.ID, Process: l.Process, At: l.At.UTC(), Sequence: l.Sequence, Record: sight.seen(r), Failure: f,
		Resolution: cmp.Or(string(l.Resolution), "open"), ResolvedAt: moment(l.ResolvedAt), ResolvedBy: l.ResolvedBy, Reason: l.Reason, Amended: l.Amended(),
	}
}

// MarshalJSON writes the number as a string.
func (i IDText) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.FormatInt(int64(i), 10)) }

// UnmarshalJSON reads a string.
func (i *IDText) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	*i = IDText(n)
	return err
}
