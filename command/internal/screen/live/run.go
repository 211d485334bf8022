package live

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Run shows the view on a terminal until a person quits it or ctx ends. It returns the error that ended it.
func Run(ctx context.Context, backend Backend, page screen.Page, in io.Reader, out io.Writer) error {
	view, cancel := context.WithCancel(ctx)
	defer cancel() // what is on its way
	m := newModel(view, backend, page)
	program := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	// A program that is killed, as by tea.WithContext, closes its input while it is being read.
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	switch {
	case m.err != nil:
		return m.err
	case err == nil && m.dialog != nil && m.dialog.stage == deciding:
		name := visible.Shell(m.dialog.process)
		return fmt.Errorf("the view ended before the answer to %s %s, so it is not known whether it is done: `ordered-dispatcher history %s` says so",
			m.dialog.verb, name, name)
	default:
		return err
	}
}

// fault is a panic of a command.
type fault struct {
	reason any
	stack  []byte
}

func (f *fault) Error() string {
	return fmt.Sprintf("the view has failed: %v; please report it with what follows. `ordered-dispatcher status` works without it\n%s", f.reason, f.stack)
}

// guarded returns a command whose panic is a message. The program ends by itself then, as by a key.
func guarded(cmd tea.Cmd) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if reason := recover(); reason != nil {
				msg = &fault{reason, debug.Stack()}
			}
		}()
		return cmd()
	}
}
