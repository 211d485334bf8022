package daemon_test

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	sinkexec "github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/pubsub"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// kinds are the sinks of the program that ships.
var kinds = []sinks.Spec{webhook.Spec(), rabbitmq.Spec(), nats.Spec(), kafka.Spec(), pubsub.Spec(), sql.Spec(), sinkexec.Spec(), stdout.Spec()}
