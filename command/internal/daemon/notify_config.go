package daemon

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Notify describes who is told of alarms, and when. Zero values mean defaults.
type Notify struct {
	// Objective is the age that the oldest waiting record of a process should not exceed; 0 for none.
	//
	// In the file: the age that the oldest waiting record of a process should not exceed. A process may have its own
	// `objective`. Default: no one is told of a lag.
	Objective time.Duration `knob:"objective" like:"objective: 30s" min:"1s" max:"168h"`
	// Settle is how long the cause must be gone before a recovery is told.
	//
	// In the file: how long the cause must be gone before a recovery is told. It doubles with each alarm that is raised
	// again within an hour of its recovery, up to an hour.
	Settle time.Duration `knob:"settle" default:"1m" min:"1s" max:"1h"`
	// Remind is the time after which an alarm that is still there is told again.
	//
	// In the file: the time after which an alarm that is still there is told again.
	Remind time.Duration `knob:"remind" default:"4h" min:"1m" max:"720h"`
	// Console is the address of the console, for the messages; "" for none.
	//
	// In the file: the address of the console, for the messages. Default: none.
	Console string `knob:"console" like:"console: https://dispatcher.example"`
	// Runbook is the address of the runbook, for the messages. The event is its anchor.
	//
	// In the file: the address of your runbook, for the messages. Each gets the anchor of its event: `#halt`, `#lag` or
	// `#dead-letters`.
	Runbook string `knob:"runbook" default:"https://github.com/ordered-dispatcher/ordered-dispatcher/blob/main/docs/runbook.md"`
	// Targets are in the order of the file.
	//
	// In the file: who is told, by names of your own, with the keys below.
	Targets []notify.Target `knob:"targets" need:"targets: {chat: {slack: {url: \"${SLACK_URL}\"}}}"`
}

// filled returns the settings with their defaults.
func (n Notify) filled() Notify {
	knob.Fill(&n)
	return n
}

// anchors are the parts of the runbook about an event.
var anchors = map[notify.Event]string{notify.Halt: "halt", notify.Lag: "lag", notify.DeadLetters: "dead-letters"}

// runbook returns the address of the page about an event.
func (n Notify) runbook(event notify.Event) string { return n.filled().Runbook + "#" + anchors[event] }

// objective returns the age that the oldest waiting record of a process should not exceed; 0 for none.
func (c Config) objective(p Process) time.Duration { return cmp.Or(p.Objective, c.Notify.Objective) }

// maxTarget bounds the name of a target, in bytes.
const maxTarget = 63

func parseNotify(n yamlfile.Node, processes []string) (c Notify) {
	keys := n.Decode(&c, yamlfile.By{"targets": func(n yamlfile.Node) { c.Targets = parseTargets(n, processes) }})
	for name, address := range map[string]string{"console": c.Console, "runbook": c.Runbook} {
		keys.Read(name, func(n yamlfile.Node) {
			if u, err := url.Parse(address); n.Sound() && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Fragment != "" || u.User != nil) {
				n.Refuse(errors.New("must be an address that begins with https:// or http://, without a login and without a # part"))
			}
		})
	}
	return c
}

func parseTargets(n yamlfile.Node, processes []string) (all []notify.Target) {
	m := n.AnyMapping()
	if n.Sound() && len(m.Names()) == 0 {
		n.Fault("there is no target: add one, or remove notify")
	}
	for _, name := range m.Names() {
		n, _ := m.Get(name)
		t := notify.Target{Name: name}
		if err := checkTarget(name); err != nil {
			n.Fault("%v", err)
		}
		keys := n.Decode(&t, nil)
		keys.Read("processes", func(n yamlfile.Node) {
			for _, process := range t.Processes {
				if n.Sound() && !slices.Contains(processes, process) {
					n.Refuse(unknownProcess(process, processes))
				}
			}
		})
		if n.Sound() {
			if err := t.Validate(); err != nil {
				n.Fault("%v", err)
			}
		}
		all = append(all, t)
	}
	return all
}

// checkTarget refuses names that a command or a label could not have.
func checkTarget(name string) error {
	if name == "" || len(name) > maxTarget || !begins(name) || visible.Inline(name) != name {
		return errors.New("the name of a target must begin with a letter, a digit or _, and have at most 63 bytes")
	}
	return nil
}
