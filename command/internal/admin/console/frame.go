package console

import (
	"fmt"
	"net/http"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// frame is what every page has.
type frame struct {
	Title    string
	Nav      []link
	Who      string
	WhoTitle string
	MayLeave bool
	MayEnter bool
	CSRF     string
}

// link is one entry of the bar at the top.
type link struct {
	Key, Name, URL    string
	Current           bool
	Badge, BadgeTitle string
}

// places are the entries of the bar.
var places = []link{
	{Key: "fleet", Name: "Fleet", URL: "/"},
	{Key: "find", Name: "Find", URL: "/find"},
	{Key: "letters", Name: "Dead letters", URL: "/letters"},
	{Key: "audit", Name: "Audit", URL: "/audit"},
	{Key: "doctor", Name: "Doctor", URL: "/doctor"},
}

// frame makes the frame of a page; current is the key of its entry.
func (c *Console) frame(r *http.Request, title, current string) frame {
	v := who(r)
	f := frame{Title: title, MayLeave: v.Session, MayEnter: v.Logins && v.Name == "", CSRF: v.CSRF}
	switch {
	case v.Name == "" && v.Operate:
		f.Who, f.WhoTitle = "no login", "without a login, you may decide"
	case v.Name == "" && v.Read:
		f.Who, f.WhoTitle = "read only", "without a login, you may look and not decide"
	case v.Operate:
		f.Who, f.WhoTitle = visible.Short(v.Name), "you may look and decide"
	case v.Read:
		f.Who, f.WhoTitle = visible.Short(v.Name)+" · read only", "you may look and not decide"
	}
	if !v.Read {
		return f
	}
	open := c.openLetters(r)
	for _, p := range places {
		p.Current = p.Key == current
		if p.Key == "letters" && open > 0 {
			p.Badge, p.BadgeTitle = fmt.Sprint(open), "open dead letters"
		}
		f.Nav = append(f.Nav, p)
	}
	return f
}

// openLetters counts the open dead letters of the last look.
func (c *Console) openLetters(r *http.Request) (open int64) {
	fleet, err := c.desk.Fleet(r.Context())
	if err != nil {
		return 0 // the page shows why
	}
	for _, line := range fleet.Processes {
		if line.DeadLetters != nil {
			open += *line.DeadLetters
		}
	}
	return open
}
