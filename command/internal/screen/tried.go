package screen

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Tried prints the result of a test that was sent to the receiver of a process.
func (p Page) Tried(process string, t daemon.Tried) error {
	did := fmt.Sprintf("the receiver of %s took the test in %v", visible.Line(process), t.Took.Round(time.Millisecond))
	if t.Undone {
		did = fmt.Sprintf("the statements of %s ran in %v, and were rolled back", visible.Line(process), t.Took.Round(time.Millisecond))
	}
	text := fmt.Sprintf("%s (dedup key %s)", did, visible.Inline(t.Delivery.DedupKey()))
	if t.New {
		text += "; the process has not run yet, so the test has an origin of its own"
	}
	return p.print(p.fold(text + "\n"))
}
