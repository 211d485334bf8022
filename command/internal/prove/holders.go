package prove

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	maxHolders   = 1000 // that are remembered
	namedHolders = 5    // that are printed
)

// Holder is a transaction that held the fence.
type Holder struct {
	PID         int        `json:"pid,omitempty"`
	GID         string     `json:"prepared,omitempty"`
	Application string     `json:"application"`
	User        string     `json:"user"`
	State       string     `json:"state,omitempty"`
	Command     string     `json:"command,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
	QueryStart  *time.Time `json:"query_start,omitempty"`
	// HiddenFrom is the role that may not see when the transaction began; else "".
	HiddenFrom string `json:"times_hidden_from,omitempty"`
	// Held is how long it was seen to hold the fence, from the first look to the last one.
	Held  time.Duration `json:"held_ns"`
	Looks int           `json:"looks"`

	first time.Time
}

// Overlap describes the transactions that the looks found open.
type Overlap struct {
	// Looks is how many looks there were. WithWriter and WithSeveral are how many of them found one open transaction,
	// or more than one.
	Looks       int `json:"looks"`
	WithWriter  int `json:"looks_with_a_writer"`
	WithSeveral int `json:"looks_with_several"`
	// Writers counts the transactions that were open at a look. Overlapping counts those that were open beside others.
	Writers     int `json:"writers"`
	Overlapping int `json:"overlapping"`
	// Most is how many were open at one moment.
	Most int `json:"most_at_once"`
}

// fenceLog collects who held the fence, and which transactions overlapped.
type fenceLog struct {
	overlap Overlap
	open    map[string]bool // of the last look: whether it counts as overlapping
	holders map[string]*Holder
	holder  string // of the last look
	stood   time.Duration
	longest time.Duration
	last    time.Time
}

// note takes the fence of a look. All times are those of one clock.
func (f *fenceLog) note(b table.Bound, now time.Time) {
	o := &f.overlap
	o.Looks++
	if len(b.Writers) > 0 {
		o.WithWriter++
	}
	several := len(b.Writers) > 1
	if several {
		o.WithSeveral++
	}
	o.Most = max(o.Most, len(b.Writers))
	open := make(map[string]bool, len(b.Writers))
	for _, id := range b.Writers {
		counted, seen := f.open[id]
		if !seen {
			o.Writers++
		}
		if several && !counted {
			o.Overlapping++
		}
		open[id] = counted || several
	}
	if f.holder != "" && b.Holder != "" {
		f.stood += now.Sub(f.last)
	}
	if b.Holder != "" {
		f.longest = max(f.longest, b.Held.Lag)
	}
	f.open, f.holder, f.last = open, b.Holder, now
}

// name remembers the session of the transaction that holds the fence, if it is still there.
func (f *fenceLog) name(holder string, writers []table.Writer, now time.Time) {
	at := slices.IndexFunc(writers, func(w table.Writer) bool {
		return w.Transaction == holder || "session "+strconv.Itoa(w.PID) == holder
	})
	if at < 0 {
		return
	}
	h := f.holders[holder]
	if h == nil {
		if len(f.holders) >= maxHolders {
			return
		}
		h = &Holder{first: now}
		if f.holders == nil {
			f.holders = map[string]*Holder{}
		}
		f.holders[holder] = h
	}
	*h = holderOf(writers[at], *h)
	h.Held, h.Looks = now.Sub(h.first), h.Looks+1
}

// holderOf gives a holder the session or the prepared transaction that it is.
func holderOf(w table.Writer, h Holder) Holder {
	h.PID, h.GID, h.Application, h.User, h.State, h.Command, h.HiddenFrom = w.PID, w.GID, w.Application, w.User, w.State, w.Command, w.TimesHiddenFrom
	h.Since, h.QueryStart = moment(w.Since), moment(w.QueryStart)
	return h
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// worst returns the transactions that held the fence for longest.
func (f *fenceLog) worst() []Holder {
	all := make([]Holder, 0, len(f.holders))
	for _, h := range f.holders {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.PID, b.PID)) })
	return all[:min(len(all), namedHolders)]
}
