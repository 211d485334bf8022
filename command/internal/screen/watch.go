package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/fold"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// WatchInterval is how often a view that repeats itself looks.
const WatchInterval = time.Second

// Watch prints the status every second until ctx ends, each after the one before. A database that is away does not
// end it. A process that is not known does.
func Watch(ctx context.Context, page Page, r *daemon.StatusReader, print func(io.Writer, []daemon.Status) error) error {
	ticker := time.NewTicker(WatchInterval)
	defer ticker.Stop()
	for {
		text, err := look(ctx, page, r, print)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := page.print(text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look returns the text of one look.
func look(ctx context.Context, page Page, r *daemon.StatusReader, print func(io.Writer, []daemon.Status) error) (string, error) {
	all, err := r.Read(ctx)
	var usage *daemon.UsageError
	switch {
	case errors.As(err, &usage):
		return "", err
	case err != nil:
		return fold.Text(visible.Indented(r.Masked(err)), page.Width, "    ") + "\n", nil
	}
	var b bytes.Buffer
	err = print(&b, all)
	return b.String(), err
}
