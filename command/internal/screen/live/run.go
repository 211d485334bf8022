package live

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
)

// Run shows the view on a terminal until a person quits it or ctx ends. It returns the error that ended it.
func Run(ctx context.Context, backend Backend, page screen.Page, in io.Reader, out io.Writer) error {
	view, cancel := context.WithCancel(ctx)
	defer cancel() // what is on its way
	m := newModel(view, backend, page)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	switch {
	case m.err != nil:
		return m.err
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the view has failed: %w; please report what is printed above. `ordered-dispatcher status` works without it", err)
	case ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted):
		return nil
	}
	return err
}
