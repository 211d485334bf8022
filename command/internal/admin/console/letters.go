package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// maxResolved is how many resolved letters of a process a page shows.
const maxResolved = 100

type lettersPage struct {
	frame
	Panel         *panel
	Processes     []choice
	Process       string // the one that was chosen, as the value of a field
	Error         string // a text that their errors contain
	All           bool
	Summary, None string
	More          string
	MayOperate    bool
	Groups        []letterGroup
}

// letterGroup are letters of one process whose errors are alike.
type letterGroup struct {
	Process, Value     string
	URL                string
	Title              string
	Error              long
	Count, Class, Span string
	Open               bool
	Letters            []letterRow
	More               string
}

type letterRow struct {
	ID               string
	URL, Key         string
	Record, Position long
	At               moment
	Attempts         int
	Open             bool
	Resolution       standing
	ResolvedBy       string
}

func (c *Console) letters(w http.ResponseWriter, r *http.Request) {
	ask := desk.LettersAsk{Process: nameOf(r.URL.Query().Get("process")), Resolved: r.URL.Query().Get("all") == "yes"}
	c.showLetters(w, r, http.StatusOK, nil, ask)
}

// findLetters answers a POST, so that no address has a text of an error.
func (c *Console) findLetters(w http.ResponseWriter, r *http.Request) {
	ask := desk.LettersAsk{Process: nameOf(r.PostFormValue("process")), Error: r.PostFormValue("error"), Resolved: r.PostFormValue("all") == "yes"}
	c.showLetters(w, r, http.StatusOK, nil, ask)
}

func (c *Console) lettersPreview(w http.ResponseWriter, r *http.Request) {
	shown, status := c.preview(r, nameOf(r.PostFormValue("process")), lettersRoom)
	c.showLetters(w, r, status, shown, desk.LettersAsk{})
}

func (c *Console) lettersDecide(w http.ResponseWriter, r *http.Request) {
	shown, status := c.decide(r, nameOf(r.PostFormValue("process")), lettersRoom)
	c.showLetters(w, r, status, shown, desk.LettersAsk{})
}

var lettersRoom = room{preview: "/letters/preview", decide: "/letters/decide", back: "/letters"}

func (c *Console) showLetters(w http.ResponseWriter, r *http.Request, status int, shown *panel, ask desk.LettersAsk) {
	found, err := c.desk.Letters(r.Context(), ask)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	page := lettersPage{
		frame: c.frame(r, "Dead letters", "letters"), Panel: shown, All: ask.Resolved, MayOperate: who(r).Operate,
		Processes: c.processChoices(r, ask.Process), Process: valueOf(ask.Process), Error: ask.Error, Groups: letterGroups(found), More: moreGroups(found),
		Summary: counted(int64(len(found.Letters)), "letter", "letters"), None: "There is no open dead letter.",
	}
	if found.More {
		page.Summary += ", and more: choose a process"
	}
	switch {
	case ask.Error != "":
		page.None = "No dead letter of the process has this text in its error."
	case ask.Resolved:
		page.None = "There is no dead letter."
	}
	c.show(w, status, "letters", page)
}

// moreGroups says how many groups the page does not show; "" if it shows all.
func moreGroups(found desk.Letters) string {
	if found.MoreGroups == 0 {
		return ""
	}
	return fmt.Sprintf("%s with %s come after these. To see them, choose a process and a text of their errors, or decide about these first.",
		counted(int64(found.MoreGroups), "more group", "more groups"), counted(int64(found.MoreGrouped), "letter", "letters"))
}

// letterGroups are the groups of the open letters, and one of each process for those that are resolved. Forms decide about
// the letters that they show.
func letterGroups(found desk.Letters) []letterGroup {
	var all []letterGroup
	for _, g := range found.Groups {
		out := letterGroup{
			Process: visible.Inline(visible.Cut(g.Process)), Value: valueOf(g.Process), URL: processURL(g.Process),
			Count: counted(int64(len(g.IDs)), "letter", "letters with errors like this"), Class: visible.Line(g.Class), Span: spanText(g), Open: true,
		}
		first := g.FirstLetters[0].Failure.Error // easier to read than what they have in common
		out.Title, out.Error = visible.Short(first), newLong("g-"+htmlID(g.Process+"\x00"+g.Pattern+"\x00"+g.Class), first)
		for _, l := range g.FirstLetters {
			out.Letters = append(out.Letters, newLetterRow(l))
		}
		if left := len(g.IDs) - len(out.Letters); left > 0 {
			out.More = fmt.Sprintf("%d more come after these: decide about these first.", left)
		}
		all = append(all, out)
	}
	return append(all, resolvedGroups(found)...)
}

func resolvedGroups(found desk.Letters) []letterGroup {
	var all []letterGroup
	for _, l := range found.Letters {
		if l.Resolution == "open" || l.Resolution == "" {
			continue
		}
		at := slices.IndexFunc(all, func(g letterGroup) bool { return g.Value == valueOf(l.Process) })
		if at < 0 {
			at = len(all)
			all = append(all, letterGroup{Process: visible.Inline(visible.Cut(l.Process)), Value: valueOf(l.Process), URL: processURL(l.Process), Title: "resolved", Error: long{Short: "Resolved"}, Class: "replayed or discarded", Span: "by hand"})
		}
		if len(all[at].Letters) < maxResolved {
			all[at].Letters = append(all[at].Letters, newLetterRow(l))
		}
		all[at].Count = counted(int64(len(all[at].Letters)), "letter", "letters")
	}
	return all
}

func spanText(g desk.Group) string {
	first, last := newMoment(g.First).Text, newMoment(g.Last).Text
	if first == last {
		return first
	}
	return first + " to " + last
}

func newLetterRow(l desk.Letter) letterRow {
	id := strconv.FormatInt(l.ID, 10)
	row := letterRow{
		ID: id, URL: "/letters/" + id, Key: visible.Short(l.Record.Key), Record: newLong("lr-"+id, l.Record.ID), Position: newLong("lp-"+id, l.Record.Position),
		At: newMoment(l.At), Attempts: l.Failure.Attempts, Resolution: newStanding(resolutionOf(l)), ResolvedBy: visible.Short(l.ResolvedBy),
	}
	row.Open = row.Resolution.Word == "open"
	return row
}

func resolutionOf(l desk.Letter) string {
	if l.Resolution == "" {
		return "open"
	}
	return l.Resolution
}

type letterPage struct {
	frame
	ID, Process           string
	Decide                bool
	State                 standing
	Facts                 []fact
	Said, Payload, Masked string
}

func (c *Console) letter(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		c.missing(w, r)
		return
	}
	l, err := c.desk.Letter(r.Context(), id, sight(r))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	page := letterPage{frame: c.frame(r, fmt.Sprintf("Dead letter %d", id), "letters"), ID: strconv.FormatInt(id, 10), State: newStanding(resolutionOf(l)), Said: visible.Text(l.Failure.Error)}
	page.Process, page.Decide = valueOf(l.Process), who(r).Operate && page.State.Word == "open"
	page.Facts = append([]fact{said("process", l.Process)}, recordFacts(l.Record)...)
	page.Facts = append(page.Facts, said("put aside", newMoment(l.At).Text), said("sequence", count(l.Sequence)), said("attempts", strconv.Itoa(l.Failure.Attempts)), said("first failed", newMoment(l.Failure.First).Text), said("class", l.Failure.Class))
	if l.ResolvedAt != nil {
		page.Facts = append(page.Facts, said("resolved", momentOf(l.ResolvedAt).Text), said("by", l.ResolvedBy), said("reason", l.Reason))
	}
	if l.Amended {
		page.Facts = append(page.Facts, said("amended", "its payload is the one that an operator had given to the record"))
	}
	page.Payload, page.Masked = payloadOf(l.Record)
	c.show(w, http.StatusOK, "letter", page)
}

// processChoices are the names for a menu.
func (c *Console) processChoices(r *http.Request, chosen string) []choice {
	all := []choice{{"", "every process", chosen == ""}}
	fleet, err := c.desk.Fleet(r.Context())
	if err != nil {
		return all // the page itself shows why
	}
	var names []string
	for _, l := range fleet.Processes {
		names = append(names, l.Process)
	}
	if chosen != "" && !slices.Contains(names, chosen) {
		names = append(names, chosen)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, choice{valueOf(name), visible.Inline(visible.Cut(name)), name == chosen})
	}
	return all
}
