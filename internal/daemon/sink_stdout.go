package daemon

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
)

const stdoutKind = "stdout"

// StdoutSink writes to the standard output: for programs token by token, and to a
// terminal with hidden characters escaped.
type StdoutSink struct{ oneAtATime }

func parseStdout(n yamlfile.Node) Sink {
	n.Nothing()
	return StdoutSink{}
}

// Kind is stdout.
func (StdoutSink) Kind() string { return stdoutKind }

func (StdoutSink) settings() map[string]string { return nil }

func (StdoutSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	writer := d.stdout
	if IsTerminal(writer) {
		writer = visible.JSON(writer)
	}
	sink, err := stdout.New(stdout.Config{Writer: writer})
	return processor.Each(sink), 0, err
}
