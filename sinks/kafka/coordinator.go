package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// clientRetries is how long the client asks again by itself unless it is told otherwise.
const clientRetries = 30 * time.Second

// retries is how long the client asks again after an error of the broker that may pass. By default the client would
// look for the coordinator of a transaction for longer than a call lasts. The end of the call then hides the broker's
// error: a cluster that can never have a coordinator looked like a silent one.
func (c Config) retries(key int16) time.Duration {
	switch key {
	case kmsg.FindCoordinator.Int16(), kmsg.InitProducerID.Int16():
		return c.patience()
	default:
		return clientRetries
	}
}

// uncoordinated lists the broker's errors that a transaction has no coordinator, or that it does not work yet.
var uncoordinated = []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator}

const coordinatorFix = "Kafka keeps what it knows of transactions in the topic __transaction_state. If this lasts, compare the number of brokers with " +
	"transaction.state.log.replication.factor (default 3: with fewer brokers the topic is not made) and transaction.state.log.min.isr (default 2): " +
	"start brokers, set both to 1 where there is one broker only, or leave transactional_id out"
