package exec

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// Config describes a child. Zero values mean defaults.
type Config struct {
	// Command is the program and its arguments. There is no shell. A name without a slash is looked up in the PATH of
	// this process. A name that begins with "." is taken from Dir. Required.
	//
	// In the file: the program and its arguments. The sink uses no shell. It looks for a name without a slash in the
	// `PATH` of `ordered-dispatcher`. A name that begins with `.` is relative to `dir`.
	Command []string `knob:"command" need:"command: [python3, /opt/sink.py]"`
	// Dir is the child's working directory. Default: this process's.
	//
	// In the file: the child's working directory. Default: the one of `ordered-dispatcher`.
	Dir string `knob:"dir"`
	// User is the account that the child runs as: its name or uid, with its groups, or uid:gid, without other groups.
	// It needs a Unix system, and this process must run as root, with the capabilities CAP_SETUID, CAP_SETGID and
	// CAP_KILL. User cannot be root. HOME, USER and LOGNAME are the account's unless Env names them. Default: the user
	// of this process.
	//
	// In the file: the account that the child runs as: a name, a uid, or `uid:gid`. This needs root. Default: the
	// account of `ordered-dispatcher`.
	User string `knob:"user"`
	// Env is the child's environment, besides PATH, HOME, LANG, LC_ALL, TZ and TMPDIR. The child has those from this
	// process unless Env names them. It has no other variables. Values may be secrets.
	//
	// In the file: variables of the child, in addition to `PATH HOME LANG LC_ALL TZ TMPDIR`. It has no others. Default:
	// none.
	Env map[string]string `knob:"env"`
	// Secrets are the secrets among the arguments of Command. They are kept out of quotes of the child, as the values
	// of Env are.
	Secrets []string `references:"command"`
	// Window is how many lines may wait for their answers at a time. Above 1 the child may have records that come
	// after one that it refuses.
	//
	// In the file: how many lines may wait for their answers at a time. It needs a `checkpoint` of at least as many.
	Window int `knob:"window" default:"1" min:"1" max:"1_000"`
	// HideAnswers keeps the child's words, on standard output and on standard error, out of errors and of the log.
	// Values of Env and Secrets are kept out anyway.
	//
	// In the file: with `false`, errors and the log contain nothing of the child's output. The sink takes values of
	// `env` out of them in any case.
	HideAnswers bool `knob:"quote_answers" true:"false" false:"true"`
	// Timeout bounds the writing of one line and the wait for one answer; then the child's group is killed.
	//
	// In the file: bounds writing one line, and waiting for one answer. Then the sink kills the child. A call has twice
	// that time for each record of a `checkpoint`, and 5 s.
	// [Its lease may be open](docs/operations.md#what-a-lease-means-to-the-database) for as long.
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	// MaxBytes bounds a record's line, with its key, type, id, headers, and the escapes of JSON, which make up to six
	// bytes from one. A record with a longer line fails for good before the line is made.
	//
	// In the file: the most bytes of a line, with key, type, id, headers and the escapes of JSON (`\u0001` is six bytes
	// for one). A record with a longer line fails for good, before the sink builds the line.
	MaxBytes int `knob:"max_bytes" default:"16_777_216" min:"1_024" max:"1_073_741_824"`
	// Grace is the time between SIGTERM and SIGKILL when the sink is closed.
	Grace time.Duration `knob:"-grace" default:"5s" min:"1ns" max:"1m"`
	// Logger takes the lines that the child writes to standard error. Default: discarded.
	Logger *slog.Logger
}

// String names the program and the user, and hides its arguments and environment.
func (c Config) String() string {
	if len(c.Command) == 0 {
		return "no command"
	}
	if c.User != "" {
		return fmt.Sprintf("command %q as user %q", c.Command[0], c.User)
	}
	return fmt.Sprintf("command %q", c.Command[0])
}

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	knob.Fill(&c)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns at once all faults that can be found on any machine, and quotes no value of Env. It does not check
// whether this machine has the program and the user.
func (c Config) Validate() error {
	if err := c.withDefaults().validate(); err != nil {
		return fmt.Errorf("configure exec sink: %w", err)
	}
	return nil
}

func (c Config) validate() error {
	return errors.Join(knob.Check(c), c.program().Validate(), child.CheckUser(c.User))
}

// program returns the command as this process's account would run it.
func (c Config) program() child.Program {
	return child.Program{Command: c.Command, Dir: c.Dir, Env: c.Env}
}

// newRedactor takes out the values of Env and Secrets.
func newRedactor(c Config) *child.Redactor {
	return child.NewRedactor(slices.AppendSeq(slices.Clone(c.Secrets), maps.Values(c.Env))...)
}
