package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
)

// program starts a program for each message.
type program struct {
	Exec
	secrets *child.Redactor
}

// variablePrefix begins the variables that have the message.
const variablePrefix = "ALARM_"

// String names the program, and hides its arguments and environment.
func (p program) String() string { return fmt.Sprintf("program %q", p.Command[0]) }

// send runs the program with the message on its standard input. Its exit status 0 means that the message arrived.
func (p program) send(ctx context.Context, m Message) error {
	body, err := m.JSON()
	if err != nil {
		return err
	}
	process, err := p.with(m).Start()
	if err != nil {
		return err
	}
	words := wordsOf(process)
	go func() { // it ends with the process
		_, _ = process.Stdin.Write(append(body, '\n'))
		_ = process.Stdin.Close()
	}()
	select {
	case <-process.Ended():
	case <-ctx.Done():
	}
	switch how := process.End(); {
	case how == nil:
		return errors.New("it was killed, and does not end")
	case how.Success():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("it did not end in time, and was killed%s", p.secrets.LastWords(words.all(), nil))
	default:
		return fmt.Errorf("%v%s", how, p.secrets.LastWords(words.all(), nil))
	}
}

// reach looks for the directory and the program, and starts nothing.
func (p program) reach(context.Context) error {
	return errors.Join(p.program().DirFault(), p.program().CommandFault())
}

// program returns what is run, without a message.
func (e Exec) program() child.Program {
	return child.Program{Command: e.Command, Dir: e.Dir, Env: e.Env}
}

// with returns what is run for a message.
func (e Exec) with(m Message) child.Program {
	p := e.program()
	p.Env = map[string]string{variablePrefix + "ID": m.ID, variablePrefix + "SUBJECT": m.Subject(), variablePrefix + "TEXT": m.Text()}
	maps.Copy(p.Env, e.Env)
	return p
}

// words collects the last lines of both outputs of a process.
type words struct {
	outputs sync.WaitGroup

	mu    sync.Mutex
	lines []string
}

// wordsOf reads the outputs of a process.
func wordsOf(process *child.Process) *words {
	w := &words{}
	w.outputs.Go(func() { child.ReadLines(process.Stdout, w.note) })
	w.outputs.Go(func() { child.ReadLines(process.Stderr, w.note) })
	return w
}

func (w *words) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = child.Recent(append(w.lines, line))
}

// all returns the lines of a process that has ended.
func (w *words) all() []string {
	w.outputs.Wait()
	return w.lines
}
