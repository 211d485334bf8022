package command

import "github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"

// form holds the flags of the form in which a list is printed.
type form struct {
	JSON bool `name:"json" xor:"form" help:"Print JSON on one line. 64-bit numbers are strings."`
	Wide bool `xor:"form" help:"Print positions, too, and lines of any length."`
}

// page returns the page for people.
func (f form) page(sys system) screen.Page {
	if f.Wide {
		return sys.out().Wide()
	}
	return sys.out()
}
