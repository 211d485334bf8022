// Command own-dispatcher is ordered-dispatcher with a sink of our own, spool, and of the sinks that ship only webhook.
package main

import (
	"example.com/own-sink/spool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

func main() {
	command.Main(spool.Spec(), webhook.Spec())
}
