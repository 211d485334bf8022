package daemon

import (
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/route"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// exclusive is a Sink of which something at the receiver belongs to one process: of two that
// share it, each would put the other out by turns.
type exclusive interface {
	// owned says what the named process has there, and how it becomes its own; "" if there is
	// nothing.
	owned(process string) (what, fix string)
}

func (s KafkaSink) owned(string) (what, fix string) {
	if s.Config.TransactionalID == "" {
		return "", ""
	}
	return "transactional_id " + s.Config.TransactionalID + " at " + strings.Join(s.Config.Brokers, ","), "give each process a transactional_id of its own: Kafka fences the one that asked for it first"
}

func (s NATSSink) owned(process string) (what, fix string) {
	if s.Config.Fence == "" {
		return "", "" // the default has the whole name of the process
	}
	template, err := route.Tokens(s.Config.Fence)
	if err != nil {
		return "", "" // parseNATS names the fault
	}
	fence, err := template.Of(processor.Delivery{Process: process})
	if err != nil {
		return "", "" // a delivery names it
	}
	return "fence " + fence + " of " + s.Config.String(), "give each process a fence of its own, or name it by {{.Process}}, as the default does: the stream takes the claims of one process"
}

// faultShared names processes that share what belongs to one.
func faultShared(processes []Process, node func(name string) yamlfile.Node) {
	owners := map[string]string{}
	for _, p := range processes {
		sink, ok := p.Sink.(exclusive)
		if !ok {
			continue
		}
		what, fix := sink.owned(p.Name)
		if what == "" {
			continue
		}
		if owner, taken := owners[what]; taken {
			node(p.Name).Fault("its sink has the %s, and so has that of process %q: %s", what, owner, fix)
			continue
		}
		owners[what] = p.Name
	}
}
