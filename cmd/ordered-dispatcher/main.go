// Command ordered-dispatcher delivers the rows of PostgreSQL tables in order, with none missing. Its --help lists its
// commands. The program is in package command.
package main

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/command"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

func main() {
	command.Main(webhook.Spec(), rabbitmq.Spec(), nats.Spec(), kafka.Spec(), pubsub.Spec(), redis.Spec(), sql.Spec(), exec.Spec(), stdout.Spec())
}
