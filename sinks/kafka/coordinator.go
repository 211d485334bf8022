package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// clientRetries is for how long the client asks again by itself where it is not told.
const clientRetries = 30 * time.Second

// retries is for how long the client asks again after a word of the broker's that may pass. It would look for the coordinator of a
// transaction for longer than a call lasts, and the end of the call hides what the broker says: a cluster that can never have
// a coordinator looked like one that is silent.
func (c Config) retries(key int16) time.Duration {
	switch key {
	case kmsg.FindCoordinator.Int16(), kmsg.InitProducerID.Int16():
		return c.patience()
	default:
		return clientRetries
	}
}

// uncoordinated are the broker's words that a transaction has no coordinator, or that it does not work yet.
var uncoordinated = []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator}

const coordinatorFix = "Kafka keeps what it knows of transactions in the topic __transaction_state. If this lasts, compare the number of brokers with " +
	"transaction.state.log.replication.factor (default 3: with fewer brokers the topic is not made) and transaction.state.log.min.isr (default 2): " +
	"start brokers, set both to 1 where there is one broker only, or leave transactional_id out"
