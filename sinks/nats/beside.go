package nats

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Beside is another process together with its sink.
type Beside struct {
	Process string
	Sink    *Sink
}

// beside finds that the stream which one process would make does not take the subjects that other processes need. The
// first process to deliver makes the stream, and knows only its own fence.
func (s *Sink) beside(fence string, others []Beside) []Finding {
	subjects := s.config.Declare.Subjects
	made := s.config.Declare.with(fence)
	var halt []string
	for _, other := range others {
		needed, err := other.Sink.needed(other.Process)
		if other.Sink.config.Stream != s.config.Stream || err != nil { // the other sink's own check names the fault
			continue
		}
		if _, added := merge(made, needed); len(added) > 0 {
			halt = append(halt, fmt.Sprintf("%q", other.Process))
			made = append(made[:len(made):len(made)], added...)
			kept, added := merge(subjects, added)
			subjects = append(kept, added...)
		}
	}
	if len(halt) == 0 {
		return nil
	}
	return []Finding{{true, fmt.Sprintf("the declared stream %q does not take the subjects of process %s, which uses it, too: if this process makes the stream, the other one halts at its first record, or waits",
		s.config.Stream, strings.Join(halt, ", ")), "set subjects in declare of this process to " + visible.Quoted(strings.Join(subjects, ","))}}
}

// needed lists the subjects that the stream has to take for a process, as far as the configuration shows: its fence's
// subject, and the subjects that it declares.
func (s *Sink) needed(process string) ([]string, error) {
	fence, err := s.fenceOf(processor.Delivery{Process: process})
	if err != nil || s.config.Declare == nil {
		return []string{fence}, err
	}
	_, added := merge(s.config.Declare.Subjects, []string{fence})
	return append(added, s.config.Declare.Subjects...), nil
}
