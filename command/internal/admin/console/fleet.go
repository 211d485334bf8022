package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// maxNeeds is how many processes the list of those that need somebody has.
const maxNeeds = 8

type fleetPage struct {
	frame
	Live, Self string
	Problem    string
	Counts     []stateCount
	Needs      needs
	Query      query
	Columns    map[string]column
	Groups     []group
	Shown      int
	None       string
}

type stateCount struct {
	Word, Tone, URL string
	Number          string
	Current         bool
}

type column struct {
	Name, URL string
	Current   bool
}

type needs struct {
	List []need
	More int
}

type need struct {
	ID, Name, URL string
	State         standing
	Why           [][]words
	Since         string
}

// group are the rows whose names begin alike; Name is "" for rows without a group.
type group struct {
	Name, Summary string
	Rows          []row
}

// row is one process. Words are what the filter looks at.
type row struct {
	ID, Name, URL, Words string
	State                standing
	Records, Age, NoLag  string
	Split                split
	Rate                 string
	Spark                spark
	Worker               string
}

func (c *Console) fleet(w http.ResponseWriter, r *http.Request) {
	fleet, err := c.desk.Fleet(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	q := newQuery(r.URL.Query())
	chosen := q.choose(fleet.Processes)
	page := fleetPage{
		frame: c.frame(r, "Fleet", "fleet"), Query: q, Problem: visible.Text(fleet.Problem),
		Live: "/live?" + q.values(url.Values{"at": {stamp(fleet)}, "set": {setOf(chosen)}}).Encode(), Self: "/?" + q.values(url.Values{}).Encode(),
		Counts: q.counts(fleet.Processes), Needs: newNeeds(fleet), Columns: q.columns(),
		Groups: q.groups(chosen), Shown: len(chosen),
	}
	switch {
	case len(fleet.Processes) == 0:
		page.None = "There is no process yet. Write one into the file, and start `ordered-dispatcher run`."
	case len(chosen) == 0:
		page.None = "No process is like that."
	}
	c.show(w, http.StatusOK, "fleet", page)
}

// stamp is the time of a look, by which a stream knows whether its page shows it.
func stamp(f desk.Fleet) string { return fmt.Sprint(f.At.UnixNano()) }

// fleetLive streams the rows of the page, the counts and the needs.
func (c *Console) fleetLive(w http.ResponseWriter, r *http.Request) {
	q := newQuery(r.URL.Query())
	shown, set := r.URL.Query().Get("at"), r.URL.Query().Get("set")
	c.stream(w, r, "", func() ([]part, error) {
		fleet, err := c.desk.Fleet(r.Context())
		if err != nil {
			return nil, err
		}
		parts := []part{
			c.part("fleet", "counts", q.counts(fleet.Processes)),
			c.part("fleet", "needs", newNeeds(fleet)),
			c.part("fleet", "problem", visible.Text(fleet.Problem)),
		}
		chosen := q.choose(fleet.Processes)
		for _, line := range chosen {
			parts = append(parts, c.rowPart(line))
		}
		if stamp(fleet) == shown {
			for i := range parts {
				parts[i].shown = true
			}
		}
		now := setOf(chosen)
		change := text("set", "set", now)
		change.shown = now == set
		return append(parts, change), nil
	})
}

func newNeeds(f desk.Fleet) needs {
	var n needs
	for _, line := range f.Processes {
		if line.Need == nil {
			continue
		}
		if len(n.List) == maxNeeds {
			n.More++
			continue
		}
		one := need{ID: "n-" + htmlID(line.Process), Name: visible.Inline(visible.Cut(line.Process)), URL: processURL(line.Process), State: stateOfLine(line)}
		for _, why := range line.Why() {
			one.Why = append(one.Why, newProse(why))
		}
		if line.Waiting != nil && line.Waiting.Seconds != nil && line.Waiting.Records > 0 {
			one.Since = "waits " + took(*line.Waiting.Seconds)
		}
		n.List = append(n.List, one)
	}
	return n
}

// stateOfLine is the state of a process; where it runs and something holds it up, it is that.
func stateOfLine(l desk.Line) standing {
	if l.State == "running" && l.Hold != nil {
		return standing{causeWords[l.Hold.Cause], "warn"}
	}
	s := newStanding(l.State)
	if s.Tone == "bad" && l.Need == nil { // as without a worker, while nothing waits
		s.Tone = "warn"
	}
	return s
}

func processURL(name string) string { return "/processes/" + url.PathEscape(name) }

func rowID(l desk.Line) string { return "p-" + htmlID(l.Process) }

func newRow(l desk.Line) row {
	r := row{
		ID: rowID(l), Name: visible.Inline(visible.Cut(l.Process)), URL: processURL(l.Process), State: stateOfLine(l),
		Split: newSplit(l), Spark: newSpark(l.Spark), Worker: visible.Inline(visible.Cut(l.Worker)), NoLag: "–",
	}
	r.Words = strings.ToLower(r.Name + " " + l.State + " " + r.Worker)
	if l.Waiting != nil {
		r.NoLag = "0"
	}
	if l.Waiting != nil && l.Waiting.Records > 0 {
		r.Records = count(l.Waiting.Records)
		if l.Waiting.Capped {
			r.Records += "+"
		}
		if l.Waiting.Seconds != nil {
			r.Age = took(*l.Waiting.Seconds)
		}
	}
	if l.Rate != nil {
		r.Rate = pace(*l.Rate)
	}
	return r
}
