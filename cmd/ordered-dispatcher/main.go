// Command ordered-dispatcher delivers the rows of PostgreSQL tables in order, with none missing. Its --help lists its
// commands. The program is in package command.
package main

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/command"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/azblob"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/file"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/gs"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/s3"
)

func main() {
	command.Program{
		Sinks:  []sinks.Spec{webhook.Spec(), rabbitmq.Spec(), nats.Spec(), kafka.Spec(), pubsub.Spec(), redis.Spec(), sql.Spec(), exec.Spec(), stdout.Spec()},
		Stores: []stores.Spec{s3.Spec(), gs.Spec(), azblob.Spec(), file.Spec()},
	}.Main()
}
