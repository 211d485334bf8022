package console

import (
	"net/http"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type faultPage struct {
	frame
	Sentences      []string
	Next           string
	Back, BackText string
}

// Fault writes the page of an error, in the look of the other pages. Package admin uses it, too.
func (c *Console) Fault(w http.ResponseWriter, r *http.Request, status int, text string) {
	page := faultPage{frame: c.bare(r, faultTitle(status)), Sentences: []string{visible.Text(text)}, Back: "/", BackText: "To the fleet"}
	if v := who(r); !v.Read && v.Logins {
		page.Back, page.BackText = "/login", "Sign in"
	}
	c.show(w, status, "fault", page)
}

// bare is a frame without what the database would have to answer.
func (c *Console) bare(r *http.Request, title string) frame {
	v := who(r)
	f := frame{Title: title, MayLeave: v.Session, CSRF: v.CSRF, MayEnter: v.Logins && v.Name == ""}
	if v.Read {
		f.Nav = places
		f.Who = visible.Short(v.Name)
	}
	return f
}

func faultTitle(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusUnauthorized:
		return "Sign in first"
	case http.StatusForbidden, http.StatusMisdirectedRequest:
		return "Refused"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "No answer now"
	case http.StatusInternalServerError:
		return "It failed"
	default:
		return "That does not work"
	}
}

func (c *Console) missing(w http.ResponseWriter, r *http.Request) {
	c.Fault(w, r, http.StatusNotFound, "There is no such page.")
}

// fail shows why the desk had no answer.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	kind := kindOf(err)
	if kind == "" || kind == desk.KindUncertain {
		c.log.Warn("a page of the console got no answer", "path", r.URL.Path, "err", err)
	}
	text := err.Error()
	if kind == desk.KindAway {
		text += " Reload the page to ask again."
	}
	c.Fault(w, r, kind.Status(), text)
}
