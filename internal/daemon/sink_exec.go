package daemon

import (
	"cmp"
	"context"
	"os"
	osexec "os/exec"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
)

const execKind = "exec"

// ExecSink hands records to a child process, in a window of its own.
type ExecSink struct{ Config exec.Config }

func parseExec(n yamlfile.Node) Sink {
	var c exec.Config
	m := n.Mapping("command", "dir", "user", "env", "window", "timeout", "max_bytes", "quote_answers")
	if n, ok := m.Need("command", `command: [python3, /opt/sink.py]`); ok {
		c.Command = n.List()
		c.Secrets = n.References()
	}
	m.Read("dir", func(n yamlfile.Node) { c.Dir = n.Text() })
	m.Read("user", func(n yamlfile.Node) { c.User = n.Text() })
	m.Read("env", func(n yamlfile.Node) { c.Env = n.Texts() })
	m.Read("window", func(n yamlfile.Node) { c.Window = n.Int(1, maxExecWindow) })
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("max_bytes", func(n yamlfile.Node) { c.MaxBytes = n.Int(minExecBytes, maxExecBytes) })
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if err := c.Validate(); err != nil {
			n.Fault("%v", err)
		}
	}
	return ExecSink{c}
}

const (
	maxExecWindow = 1_000
	minExecBytes  = 1 << 10
	maxExecBytes  = 1 << 30
)

// Kind is exec.
func (ExecSink) Kind() string { return execKind }

func (s ExecSink) settings() map[string]string {
	return map[string]string{"target": s.Config.String()}
}

// confidential: the arguments may hold a secret.
func (s ExecSink) confidential() map[string]string {
	return map[string]string{"command": strings.Join(s.Config.Command, "\x00")}
}

func (s ExecSink) window() int { return s.Config.Window }

func (s ExecSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openPipeline(d, s, func(s ExecSink) (*exec.Sink, error) {
		config := s.Config
		config.Logger = d.logger
		return exec.New(config)
	})
	return dispatch, s.callTimeout(d.checkpoint), err
}

// callTimeout is that of a call with the records of a checkpoint: the sink bounds the writing of each line, and
// the wait for each answer.
func (s ExecSink) callTimeout(checkpoint int) time.Duration {
	timeout := cmp.Or(s.Config.Timeout, exec.DefaultTimeout)
	return min(2*timeout*time.Duration(checkpoint)+callMargin, maxCallTime)
}

// examine looks for the user, the directory and the program, and starts nothing.
func (s ExecSink) examine(_ context.Context, d *doctor, process string) error {
	c := s.Config
	if _, err := exec.New(c); err != nil {
		d.find(process, Refuse, "correct user, or run ordered-dispatcher so that it can change to it", "the sink's command cannot be started as its user: %v", err)
		return nil
	}
	if info, err := os.Stat(c.Dir); c.Dir != "" && (err != nil || !info.IsDir()) {
		d.find(process, Refuse, "make the directory, or correct dir", "the directory %q of the sink's command is not there", c.Dir)
		return nil
	}
	if strings.HasPrefix(c.Command[0], ".") {
		return nil // found from dir
	}
	if _, err := osexec.LookPath(c.Command[0]); err != nil {
		d.find(process, Refuse, "install the program, make it executable, or give its whole path", "the sink's command cannot be started on this machine: %v", err)
	}
	return nil
}
