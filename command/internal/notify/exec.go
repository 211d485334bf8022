package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// program starts a program for each message.
type program struct{ Exec }

// variablePrefix begins the variables that have the message.
const variablePrefix = "ALARM_"

// inherited lists the variables that a child has from this process, as a child of the exec sink does.
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"}

const (
	// maxWords bounds the quote of a child, in bytes.
	maxWords = 1000
	// pipesTimeout is how long a process that left the child's group may hold its output open.
	pipesTimeout = time.Second
)

// String names the program, and hides its arguments and environment.
func (p program) String() string { return fmt.Sprintf("program %q", p.Command[0]) }

// send runs the program with the message on its standard input. Its exit status 0 means that the message arrived.
func (p program) send(ctx context.Context, m Message) error {
	body, err := m.JSON()
	if err != nil {
		return err
	}
	var words tail
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.Dir, p.environment(m), ownGroup()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(body, '\n')), &words, &words
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	cmd.WaitDelay = pipesTimeout
	if err := cmd.Start(); err != nil {
		return err
	}
	err = cmd.Wait()
	killGroup(cmd.Process) // what the child started
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("it did not end in time, and was killed%s", words.quoted())
	case errors.Is(err, exec.ErrWaitDelay): // the child itself ended well
		return nil
	case err != nil:
		return fmt.Errorf("%w%s", err, words.quoted())
	default:
		return nil
	}
}

// environment returns the child's whole environment.
func (p program) environment(m Message) []string {
	all := map[string]string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			all[name] = value
		}
	}
	maps.Copy(all, p.Env)
	all[variablePrefix+"ID"] = m.ID
	all[variablePrefix+"SUBJECT"] = m.Subject()
	all[variablePrefix+"TEXT"] = m.Text()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+"="+all[name])
	}
	return lines
}

// reach looks for the directory and the program, and starts nothing.
func (p program) reach(context.Context) error {
	if info, err := os.Stat(p.Dir); p.Dir != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("there is no directory %q", p.Dir)
	}
	if strings.HasPrefix(p.Command[0], ".") {
		return nil // found from dir
	}
	_, err := exec.LookPath(p.Command[0])
	return err
}

// tail keeps the last bytes of a child's output.
type tail struct{ text []byte }

// Write is called by os/exec, by one goroutine at a time.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxWords):]
	return len(p), nil
}

// quoted returns the words for an error; "" without any.
func (t *tail) quoted() string {
	words := visible.Line(strings.ToValidUTF8(string(t.text), ""))
	if words == "" {
		return ""
	}
	return "; its last words: " + words
}
