package daemon

import (
	"errors"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
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
	if isClosed(writer) {
		return processor.Dispatch{}, 0, errors.New("the standard output is closed, or leads to the null device: every record would be lost. Lead it to what reads the records")
	}
	if IsTerminal(writer) {
		writer = visible.JSON(writer)
	}
	sink, err := stdout.New(stdout.Config{Writer: writer})
	return processor.Each(sink), 0, err
}
