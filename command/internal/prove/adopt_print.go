package prove

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Commands are the parts of the commands that an adoption proposes; empty where they are not known.
type Commands struct{ Process, File string }

// PrintAdoption writes an adoption for people, in lines of a width; 0: they may have any length.
func PrintAdoption(w io.Writer, width int, a Adoption, c Commands) error {
	p := page{width: width}
	p.say("", "%s, ordered by %s, taken over from %s.", visible.Inline(a.Table), visible.Inline(a.Order), visible.Inline(a.Old))
	p.gap()
	if a.Running != "" {
		p.say("", "No position yet: the old way still runs: %s. Stop %s, and run adopt again.", a.Running, visible.Inline(a.Stop))
		return p.to(w)
	}
	a.start(&p)
	a.after(&p)
	for _, note := range a.Notes {
		p.say("", "Note: %s.", visible.Inline(note))
	}
	p.gap()
	a.commands(&p, c)
	return p.to(w)
}

// start describes the position, and what it rests on.
func (a Adoption) start(p *page) {
	switch {
	case a.Start == "":
		p.say("", "Begin at the beginning of the table.")
	case a.Row != nil:
		p.say("", "Begin after row %s. Every row up to it is delivered, and no other can appear before it.", a.Row)
	default:
		p.say("", "Begin after the position that was given. No row can appear before it any more.")
	}
	if a.Earlier != "" {
		p.say("", "It is earlier than it could be: %s.", visible.Inline(a.Earlier))
	}
	if a.Unproven != "" {
		p.say("", "Not proven. Nothing is lost only if this is true: %s.", visible.Inline(a.Unproven))
	}
}

// after describes the rows after the position.
func (a Adoption) after(p *page) {
	switch {
	case !a.AgainKnown:
		p.say("", "%s after it. The database does not show which of them are delivered already: those are sent twice.", counted(a.Next))
		return
	case a.Again == 0:
		p.say("", "No row is sent twice.")
	default:
		p.say("", "Sent twice, because they are delivered already and come after it: %s, by id:", counted(a.Again))
		p.list(a.Twice, int(a.Again))
	}
	p.say("", "To be delivered: %s.", counted(a.Next))
}

// counted is a number of rows, of which up to MaxLagRecords are counted.
func counted(n int64) string {
	if n >= table.MaxLagRecords {
		return fmt.Sprintf("%d rows or more", n)
	}
	return quantity.Of(n, "row")
}

// commands are the next steps. People paste the setting and the command, so each has one line.
func (a Adoption) commands(p *page, c Commands) {
	setting, target := "beginning", "--to-start"
	if a.Start != "" {
		setting, target = strconv.Quote(string(a.Start)), "--to-position "+visible.Quoted(string(a.Start))
	}
	p.say("", "1. Stop %s. What it delivers from now on is sent again.", visible.Inline(a.Stop))
	p.say("", "2. If the process has not run yet, set this in the file:")
	fmt.Fprintf(p, "\n  start: %s\n\n", setting)
	if c.Process == "" {
		c.Process = "PROCESS"
	}
	if c.File == "" || c.File == "-" {
		c.File = "FILE"
	}
	p.say("", "If it has a cursor, move that. First see what would happen, then leave out --dry-run:")
	fmt.Fprintf(p, "\n  ordered-dispatcher seek %s -c %s %s --reason %s --dry-run\n\n",
		visible.Shell(c.Process), visible.Shell(c.File), target, visible.Quoted("adopted on "+time.Now().UTC().Format(time.DateOnly)))
	p.say("", "3. Start it with `ordered-dispatcher run`.")
}
