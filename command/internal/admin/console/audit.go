package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type auditPage struct {
	frame
	Processes, Actors []choice
	Decisions         bool
	Summary, None     string
	Events            []auditRow
	Newer, Older      string
}

type auditRow struct {
	At               moment
	Process, URL     string
	Action           standing
	Actor            long
	User, Record     string
	Reason, From, To long
}

func (c *Console) audit(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	ask := desk.AuditAsk{Process: nameOf(v.Get("process")), Actor: nameOf(v.Get("by")), Decisions: v.Get("decisions") == "yes", Limit: 100}
	ask.Before, _ = strconv.ParseInt(v.Get("before"), 10, 64)
	found, err := c.desk.Audit(r.Context(), ask, sight(r))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	page := auditPage{
		frame: c.frame(r, "Audit", "audit"), Processes: c.processChoices(r, ask.Process), Actors: actorChoices(found.Actors, ask.Actor), Decisions: ask.Decisions,
		Summary: counted(int64(len(found.Events)), "event", "events"), None: "Nothing like that was done.",
	}
	for _, e := range found.Events {
		page.Events = append(page.Events, newAuditRow(e))
	}
	keep := url.Values{}
	for _, key := range []string{"process", "by", "decisions"} {
		if v.Get(key) != "" {
			keep.Set(key, v.Get(key))
		}
	}
	if ask.Before > 0 {
		page.Newer = "/audit?" + keep.Encode()
	}
	if found.Next > 0 {
		keep.Set("before", strconv.FormatInt(found.Next, 10))
		page.Older = "/audit?" + keep.Encode()
	}
	c.show(w, http.StatusOK, "audit", page)
}

func actorChoices(actors []string, chosen string) []choice {
	all := []choice{{"", "by anybody", chosen == ""}}
	known := chosen == ""
	for _, a := range actors {
		known = known || a == chosen
		all = append(all, choice{valueOf(a), "by " + visible.Short(a), a == chosen})
	}
	if !known {
		all = append(all, choice{valueOf(chosen), "by " + visible.Short(chosen), true})
	}
	return all
}

func newAuditRow(e desk.Event) auditRow {
	id := strconv.FormatInt(e.ID, 10)
	row := auditRow{
		At: newMoment(e.At), Process: visible.Inline(visible.Cut(e.Process)), Action: standing{visible.Line(strings.ReplaceAll(e.Action, "_", " ")), eventTones[e.Action]},
		Actor: newLong("a-"+id, e.Actor), Record: visible.Short(e.RecordID), Reason: newLong("r-"+id, e.Reason), From: newLong("f-"+id, e.From), To: newLong("t-"+id, e.To),
	}
	if e.To == e.From {
		row.To = long{}
	}
	if e.Process != "" {
		row.URL = processURL(e.Process)
	}
	if e.User != e.Actor {
		row.User = visible.Short(e.User)
	}
	return row
}
