package prove

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// PrintJSON writes a result as JSON, in one line.
func PrintJSON(w io.Writer, result any) error {
	return json.NewEncoder(visible.JSON(w)).Encode(result)
}

// Print writes a report for people, in lines of a width; 0: they may have any length.
func Print(w io.Writer, width int, r Report) error {
	p := page{width: width}
	p.say("", "%s, ordered by %s: %s in %s, at least %s apart. %s became visible.", visible.Inline(r.Table), visible.Inline(r.Order),
		quantity.Of(r.Overlap.Looks, "look"), round(r.Lasted), round(r.Every), quantity.Of(r.Rows, "row"))
	if r.Early != "" {
		p.say("", "The measurement ended early: %s.", r.Early)
	}
	p.gap()
	r.readers(&p)
	p.gap()
	r.verdict(&p)
	p.gap()
	r.fence(&p)
	p.gap()
	r.latency(&p)
	if len(r.Findings) > 0 {
		p.gap()
		p.say("", "`doctor` would find:")
		for _, f := range r.Findings {
			p.say("  ", "%s", visible.Inline(f))
		}
	}
	return p.to(w)
}

func (r Report) all() []Reader { return []Reader{r.ByID, r.ByTime, r.Ours} }

// readers is the table of the readers, and the rows that they lost.
func (r Report) readers(p *page) {
	fmt.Fprintf(p, "%-24s %8s\n", "READER", "LOST")
	for _, reader := range r.all() {
		lost := fmt.Sprint(reader.Lost)
		if reader.Unfit != "" {
			lost = "-"
		}
		fmt.Fprintf(p, "%-24s %8s\n", reader.Reads, lost)
	}
	for _, reader := range r.all() {
		switch {
		case reader.Unfit != "":
			p.gap()
			p.say("", "No reader by %q: %s.", reader.Reads, reader.Unfit)
		case reader.Lost > 0:
			p.gap()
			p.say("", "Lost by %q, by id:", reader.Reads)
			p.list(reader.Rows, reader.Lost)
		}
	}
}

// verdict explains what the figures prove, and what they do not.
func (r Report) verdict(p *page) {
	o := r.Overlap
	lost := r.ByID.Lost + r.ByTime.Lost
	switch {
	case r.Ours.Lost > 0:
		p.say("", "Ours lost rows, too: they got a place before rows that were there already. An application sets the time or the id, "+
			"or a row was moved. `doctor` names the cause if it leaves a trace.")
	case lost > 0:
		p.say("", "A loop that reads in one of these ways had passed these rows when they became visible, and never asks for them again. Ours lost none.")
	case r.Rows == 0:
		p.say("", "No row became visible, so nothing could be lost. Measure while the application writes.")
	default:
		p.say("", "Nothing was lost in this time. That proves little: only what these looks saw counts. A row is lost when transactions overlap "+
			"and become visible in another order than their rows have. One slow commit is enough, in any other minute.")
	}
	p.say("", "Transactions that the looks found open: %d. Of these, %d overlapped with another one, and at most %d were open at once. "+
		"A transaction between two looks is not counted.", o.Writers, o.Overlapping, o.Most)
}

// fence names who held it.
func (r Report) fence(p *page) {
	if len(r.Holders) == 0 && r.Stood == 0 {
		p.say("", "No transaction held the fence from one look to the next.")
		return
	}
	p.say("", "The fence was held for %s of %s, and was behind by %s at most. It was held by:", round(r.Stood), round(r.Lasted), round(r.Longest))
	for _, h := range r.lasting() {
		p.say("  ", "%s", h)
	}
	if r.Waiting > 0 {
		p.say("", "%s waited for the fence at the end.", quantity.Of(r.Waiting, "visible row"))
	}
}

// lasting returns the holders that more than one look has seen, if there are any.
func (r Report) lasting() []Holder {
	long := slices.DeleteFunc(slices.Clone(r.Holders), func(h Holder) bool { return h.Looks < 2 })
	if len(long) == 0 {
		return r.Holders
	}
	return long
}

// String describes a holder in one line.
func (h Holder) String() string {
	return fmt.Sprintf("%s: held it for %s, in %s", h.session(), round(h.Held), quantity.Of(h.Looks, "look"))
}

// session names the session, and how to find it.
func (h Holder) session() string {
	who := fmt.Sprintf("pid %d, application %s, user %s", h.PID, quoted(h.Application), quoted(h.User))
	if h.GID != "" {
		who = fmt.Sprintf("prepared transaction %s, user %s", quoted(h.GID), quoted(h.User))
	}
	if h.State != "" {
		who += ", " + visible.Line(h.State)
	}
	if h.Command != "" {
		who += ", last statement " + visible.Line(h.Command)
	}
	switch {
	case h.Since != nil:
		who += ", transaction since " + h.Since.Format(time.RFC3339)
	case h.HiddenFrom != "":
		who += ", times hidden from role " + quoted(h.HiddenFrom) + " (grant pg_read_all_stats to see them)"
	}
	if h.QueryStart != nil {
		who += ", query since " + h.QueryStart.Format(time.RFC3339)
	}
	return who
}

// latency is what to expect of ours.
func (r Report) latency(p *page) {
	if r.Waited.Rows == 0 {
		p.say("", "Ours delivered no row of this time, so there is no latency to show.")
		return
	}
	p.say("", "Ours delivered %s. The latency that the fence adds, from the look that showed a row first to the look that delivered it: "+
		"p50 %s, p95 %s, longest %s. A row that waits for less than one look counts as 0s.",
		quantity.Of(r.Delivered, "row"), round(r.Waited.P50), round(r.Waited.P95), round(r.Waited.Max))
	if r.Age.Rows > 0 {
		p.say("", "From the time in the row to its delivery: p50 %s, p95 %s, longest %s.", round(r.Age.P50), round(r.Age.P95), round(r.Age.Max))
	}
}
