package screen_test

import (
	"io"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
)

// env is an environment.
func env(variables map[string]string) screen.Env {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

// page is a page of 80 columns without colours.
func page(w io.Writer) screen.Page { return screen.NewPage(w, env(nil)) }
