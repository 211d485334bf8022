package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	watchInterval = time.Second
	clearScreen   = "\x1b[H\x1b[2J"
)

// Watch prints the status every second until ctx ends. On a terminal each status replaces the one before; elsewhere
// it follows it. A database that is away does not end it. A process that is not known does.
func Watch(ctx context.Context, w io.Writer, r *StatusReader, print func(io.Writer, []Status) error) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		screen, err := r.screen(ctx, print)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if visible.IsTerminal(w) {
			screen = clearScreen + screen
		}
		if _, err := io.WriteString(w, screen); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// screen returns the text of one look.
func (r *StatusReader) screen(ctx context.Context, print func(io.Writer, []Status) error) (string, error) {
	var b bytes.Buffer
	all, err := r.Read(ctx)
	var usage *UsageError
	switch {
	case errors.As(err, &usage):
		return "", err
	case err != nil:
		fmt.Fprintln(&b, visible.Indented(r.secrets.Replace(err.Error())))
	default:
		err = print(&b, all)
		return b.String(), err
	}
	return b.String(), nil
}
