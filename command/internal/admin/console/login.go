package console

import (
	"net/http"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type loginPage struct {
	frame
	About, Problem string
	Passwords      bool
}

// login shows the form. Package admin takes what it sends.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	v := who(r)
	page := loginPage{frame: c.bare(r, "Sign in"), Problem: visible.Text(v.LoginFailed), Passwords: v.Passwords, About: "with a token of the daemon's file"}
	page.Nav, page.MayEnter = nil, false
	if v.Passwords {
		page.About = "with a name and a password, or with a token"
	}
	if !v.Logins {
		page.About = "The file of the daemon names no login: see admin in docs/configuration.md."
	}
	status := http.StatusOK
	if v.LoginFailed != "" {
		status = http.StatusUnauthorized
	}
	c.show(w, status, "login", page)
}
