package console

import (
	"net/http"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type findPage struct {
	frame
	By                     []choice
	Value                  string
	Asked                  bool
	Summary, Problem, None string
	Found                  []foundRow
}

type foundRow struct {
	Process, URL, Key string
	State             standing
	ID, Position      long
	Relative          string
	Attempts          string
	Detail            long
}

func (c *Console) findForm(w http.ResponseWriter, r *http.Request) {
	c.show(w, http.StatusOK, "find", findPage{frame: c.frame(r, "Find a record", "find"), By: byChoices("")})
}

// find answers a POST, so that what is searched for is in no address.
func (c *Console) find(w http.ResponseWriter, r *http.Request) {
	ask := desk.Search{By: desk.By(r.PostFormValue("by")), Text: r.PostFormValue("value")}
	page := findPage{frame: c.frame(r, "Find a record", "find"), By: byChoices(ask.By), Value: ask.Text, Asked: true, None: "No process has a record like that."}
	found, err := c.desk.Find(r.Context(), ask, sight(r))
	if err != nil {
		page.Problem, page.None = sentence(err.Error()), ""
		c.show(w, kindOf(err).Status(), "find", page)
		return
	}
	var problems []string
	for _, p := range found.Problems {
		problems = append(problems, visible.Short(p.Process)+": "+sentence(p.Text))
	}
	for _, p := range found.More {
		problems = append(problems, visible.Short(p)+" has more records like that than are shown")
	}
	page.Problem = strings.Join(problems, "; ")
	for i, s := range found.Records {
		page.Found = append(page.Found, newFoundRow(i, s))
	}
	page.Summary = counted(int64(len(found.Records)), "place", "places")
	c.show(w, http.StatusOK, "find", page)
}

func byChoices(by desk.By) []choice {
	all := []choice{{string(desk.ByID), "id", false}, {string(desk.ByKey), "key", false}, {string(desk.ByDedup), "dedup key", false}}
	for i := range all {
		all[i].Chosen = all[i].Value == string(by)
	}
	return all
}

func newFoundRow(i int, s desk.FoundRecord) foundRow {
	id := string(rune('a'+i%26)) + htmlID(s.Process+"\x00"+s.Record.Position)
	out := foundRow{
		Process: visible.Inline(visible.Cut(s.Process)), URL: processURL(s.Process), Key: visible.Short(s.Record.Key), State: newStanding(strings.ReplaceAll(string(s.Standing), "_", " ")),
		ID: newLong("i-"+id, s.Record.ID), Position: newLong("p-"+id, s.Record.Position), Relative: relative(s), Attempts: "–", Detail: newLong("d-"+id, s.Text),
	}
	if s.Failure != nil {
		out.Attempts = count(int64(s.Failure.Attempts))
	}
	return out
}

// relative says how far a record is from the cursor; "" if that is not known.
func relative(s desk.FoundRecord) string {
	if s.Cursor == nil {
		return ""
	}
	passed := s.Record.Position <= *s.Cursor
	number := count(s.Between)
	if s.Capped {
		number += " or more"
	}
	switch {
	case passed && s.Between == 0:
		return "the last one before the cursor"
	case passed:
		return number + " before the cursor"
	case s.Between == 0:
		return "right after the cursor"
	default:
		return number + " after the cursor"
	}
}
