package admin

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// ServeAt is Serve with a clock of the caller's.
func ServeAt(pages Pages, now func() time.Time) daemon.Serve { return serve(pages, now) }
