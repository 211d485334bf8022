package daemon

import (
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
)

const stdoutKind = "stdout"

// StdoutSink writes to the standard output.
type StdoutSink struct{ oneAtATime }

func parseStdout(n yamlfile.Node) Sink {
	n.Nothing()
	return StdoutSink{}
}

// Kind is stdout.
func (StdoutSink) Kind() string { return stdoutKind }

func (StdoutSink) settings() map[string]string { return nil }

func (StdoutSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	sink, err := stdout.New(stdout.Config{Writer: d.stdout})
	return processor.Each(sink), 0, err
}
