package command

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/console"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

type runCommand struct {
	file
	Drain  bool          `help:"Deliver what there is and end. Exits with 0 if every process has caught up, 3 if one is halted, 1 on an error that does not pass by itself, such as a wrong password. Waits for a server or receiver that is away."`
	Grace  time.Duration `default:"${grace}" help:"How long a delivery in flight may take after SIGTERM, SIGINT or SIGHUP. A second signal ends the program at once."`
	Listen string        `placeholder:"ADDR" help:"Serve the console, /metrics, /healthz and /readyz at host:port, and /records with a listen_token. :port listens on this machine only."`
}

// Run is called by kong.
func (c *runCommand) Run(ctx context.Context, sys system, logger *slog.Logger, bar *screen.Bar) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	if c.Grace <= 0 {
		return &daemon.UsageError{Err: errors.New("--grace must be above 0s")}
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopping()...)
	defer signal.Stop(signals)
	if writesTo(config, sys) {
		bar = nil
	}
	return runWithBar(ctx, config, bar, func() error {
		return daemon.Run(ctx, daemon.RunConfig{
			Config: config, Drain: c.Drain, Grace: c.Grace, Listen: c.Listen,
			Stdout: sys.stdout, Logger: logger, Signals: signals, Exit: sys.exit, Serve: admin.Serve(pages(logger)),
		})
	})
}

// writesTo reports whether a sink writes its records to the terminal, between which a bar would stand.
func writesTo(config daemon.Config, sys system) bool {
	return screen.Terminal(sys.stdout) && slices.ContainsFunc(config.Processes, func(p daemon.Process) bool { return p.Sink.Kind == "stdout" })
}

// pages makes the pages of the console.
func pages(logger *slog.Logger) admin.Pages {
	return func(d *desk.Desk) http.Handler { return console.New(console.Config{Desk: d, Logger: logger}) }
}

// defaults are the values that stand for ${…} in the tags of the commands: the library has the defaults.
func defaults() kong.Vars {
	var process processor.Config
	var decision cursor.Decision
	knob.Fill(&process)
	knob.Fill(&decision)
	return kong.Vars{"version": version(), "grace": process.Grace.String(), "timeout": decision.Timeout.String(), "expect": expectCursor}
}

// interruptible returns a context that ends with the first signal.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopping()...)
}

// stopping returns the signals that end a command. A terminal that closes sends SIGHUP. Under nohup that signal is
// ignored, and asking for it would undo this.
func stopping() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
