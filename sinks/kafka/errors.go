package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	outcomes "github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// refusal is an error of the protocol about one record.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// refusals lists the broker's errors about the contents of a batch. They are final.
var refusals = []*kerr.Error{
	kerr.MessageTooLarge,
	kerr.RecordListTooLarge,
	kerr.InvalidRecord,
	kerr.InvalidTopicException,
}

// conditions lists the broker's errors after which it has taken nothing, and which no change of a record can fix. The
// sink sets the time of sending. A topic that was deleted had the right name, and one that is missing may be made.
// The next link gets a producer id in place of one that the coordinator has forgotten.
var conditions = []*kerr.Error{kerr.InvalidTimestamp, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InvalidProducerIDMapping,
	kerr.TransactionAbortable, kerr.InvalidTxnState, kerr.TransactionCoordinatorFenced}

// passing lists the broker's errors that it takes nothing now, and may take it later. By then the client has asked
// again for a while: see patience. REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND are not among them: they
// leave open whether the broker took something, and the client never gives up after one of them. A leader that
// stepped down after it had taken a batch answers NOT_LEADER, too, and a leader whose disk failed may have the batch:
// see unanswered.
var passing = []*kerr.Error{
	kerr.NotEnoughReplicas,
	kerr.NotLeaderForPartition,
	kerr.LeaderNotAvailable,
	kerr.ReplicaNotAvailable,
	kerr.BrokerNotAvailable,
	kerr.FencedLeaderEpoch,
	kerr.UnknownLeaderEpoch,
	kerr.CoordinatorNotAvailable,
	kerr.CoordinatorLoadInProgress,
	kerr.NotCoordinator,
	kerr.ConcurrentTransactions,
	kerr.ThrottlingQuotaExceeded,
	kerr.KafkaStorageError,
	kerr.NetworkException,
}

// vague lists the broker's errors that leave open whether it took something.
var vague = []*kerr.Error{
	kerr.UnknownServerError,
	kerr.RequestTimedOut,
	kerr.NotEnoughReplicasAfterAppend,
	kerr.KafkaStorageError,
	kerr.NetworkException,
}

// isPassing reports whether no change of a record can fix the error: it is one of passing, or the client could not
// reach the partition's leader.
func isPassing(err error) bool {
	return isOneOf(err, passing) || errors.Is(err, kgo.ErrRecordRetries) || isDial(err)
}

// isDial reports whether a connection could not be made.
func isDial(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// isLoss reports whether acknowledged records are missing: see stood.
func isLoss(err error) bool { return outcomes.IsReportedOnce(err) }

func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r) || isOneOf(err, refusals)
}

// denials lists the broker's errors about us: our login, our rights, our settings.
var denials = []*kerr.Error{
	kerr.SaslAuthenticationFailed,
	kerr.IllegalSaslState,
	kerr.UnsupportedSaslMechanism,
	kerr.TopicAuthorizationFailed,
	kerr.ClusterAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed,
	kerr.InvalidTransactionTimeout,
	kerr.UnsupportedForMessageFormat,
	kerr.UnsupportedCompressionType,
	kerr.UnsupportedVersion,
	kerr.InvalidRequiredAcks,
	kerr.InvalidRequest,
	kerr.SecurityDisabled,
	kerr.PolicyViolation, // "request parameters": acks, compression, a transactional id. For a record it is INVALID_RECORD
}

// refusesUs reports whether every record meets this error of the broker. For a missing topic that is so only if no
// part of a record is in the topic's name.
func (s *Sink) refusesUs(err error) bool {
	return isOneOf(err, denials) || s.topic.Fixed() && isOneOf(err, []*kerr.Error{kerr.UnknownTopicOrPartition, kerr.UnknownTopicID})
}

// isOldEpoch reports whether the producer's epoch is not the last one. Without a transactional id the client itself
// has taken another epoch, for a partition that refused its records.
func isOldEpoch(err error) bool {
	return isOneOf(err, []*kerr.Error{kerr.ProducerFenced, kerr.InvalidProducerEpoch})
}

// isFenced reports whether another producer has taken the transactional id, the coordinator has given up a
// transaction that took too long, or the coordinator has an older epoch because its data were set back.
func (s *Sink) isFenced(err error) bool { return s.config.TransactionalID != "" && isOldEpoch(err) }

// errForgotten: in a transaction the client took a new epoch, because the broker no longer knows its producer id.
// Retention has deleted all records that it had sent to the partition. The coordinator has aborted the records that
// were sent under the old epoch.
var errForgotten = processor.Unreached(errors.New("the broker has forgotten the producer in the middle of the transaction; the next attempt begins another one"))

// errRenumbered: in a window the client took a new epoch after an answer was lost, or after a batch was sent again.
// The broker may have that batch, and would take it once more under the new number.
var errRenumbered = errors.New("an answer was lost or unclear, and the client has begun to number anew since: sent once more, the record could be there twice")

// errUnread: written cannot read the records of a request, so it could not keep the order of the requests that it
// lets through.
var errUnread = processor.Unreached(errors.New("the client has written its records in a form that this version cannot check, so they were not sent: " +
	"go back to the previous version, and report this"))

func isOneOf(err error, all []*kerr.Error) bool {
	for _, e := range all {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// known is a failure with a known outcome. So it is not a time-out to the processor, though a time-out may be its
// cause.
type known struct{ error }

func (e *known) Unwrap() error { return e.error }

// Timeout is false.
func (e *known) Timeout() bool { return false }

// unsent is a failure before anything was sent.
type unsent struct{ error }

func (e *unsent) Error() string { return "nothing was sent: " + e.error.Error() }
func (e *unsent) Unwrap() error { return e.error }

// Timeout is false: the outcome is known.
func (e *unsent) Timeout() bool { return false }

// unconnected is a failure to make a link.
type unconnected struct{ error }

func (e *unconnected) Unwrap() error { return e.error }

// uncommitted is a failure before a transaction was committed.
type uncommitted struct{ error }

func (e *uncommitted) Error() string { return "nothing is committed: " + e.error.Error() }
func (e *uncommitted) Unwrap() error { return e.error }

// Timeout is false: the outcome is known.
func (e *uncommitted) Timeout() bool { return false }

// uncommittedCause removes from err the words that nothing is committed. It serves errors that say more: nothing was
// sent.
func uncommittedCause(err error) error {
	if u, ok := errors.AsType[*uncommitted](err); ok {
		return u.error
	}
	return err
}

// unconfirmed returns the outcome of a commit that failed. If Kafka was asked once and refuses, the refusal holds.
// After a lost connection the client asks again by itself, and a refusal of that request proves nothing about the
// first one. Any other error leaves the outcome open.
func unconfirmed(err error, asked int) error {
	if asked == 0 {
		return &uncommitted{err}
	}
	var answer *kerr.Error
	if errors.As(err, &answer) && asked == 1 && !answer.Retriable && answer != kerr.UnknownServerError {
		return &uncommitted{err}
	}
	err = fmt.Errorf("the commit may have happened: %w", hungUp(err))
	if answer != nil && answer.Retriable {
		err = &noWord{err}
	}
	return &open{err}
}

// hungUp removes the client's guess about a connection that ends before its first answer: that TLS or a login may be
// missing. This connection has worked.
func hungUp(err error) error {
	var eof *kgo.ErrFirstReadEOF
	if errors.As(err, &eof) {
		return errors.New("the broker closed the connection before it answered")
	}
	return err
}

// isUnfinished reports whether time ran out although no broker hung up. The broker was reached and is silent, or its
// answers leave open whether it took something. No change of a record can fix that.
func isUnfinished(err error, of requests) bool {
	return errors.Is(err, context.DeadlineExceeded) && !of.cut
}

// isWord reports whether an error is the broker's answer about a record, or the client's own error. The client gives
// up a batch only where its last request was answered.
func isWord(err error) bool {
	var answer *kerr.Error
	return isRefusal(err) || errors.As(err, &answer) || isPassing(err)
}

// unanswered returns the outcome of records that were sent. Without an answer of the broker about them, or with one
// that decides nothing, the broker may have them. It may have them as well if an answer was lost: the client asks
// again by itself, and a refusal of that request proves nothing about the first one. The same holds for a refusal of
// records that were sent again after another answer, such as REQUEST_TIMED_OUT: the client does not report which
// answer that was. An error of passing follows others, or comes from a leader that stepped down after it had taken
// the batch.
func unanswered(err error, of requests) error {
	word := isWord(err)
	switch {
	case !word && isUnfinished(err, of) && of.again:
		return &open{&noWord{fmt.Errorf("the broker may have the record: it was asked more than once, and its answers left that open: %w", err)}}
	case !word && (isUnfinished(err, of) || errors.Is(err, errRenumbered)):
		return &open{&noWord{fmt.Errorf("the broker may have the record: %w", err)}}
	case !word, isOneOf(err, vague):
		return &open{fmt.Errorf("the broker may have the record: %w", err)}
	case of.silent:
		return &open{fmt.Errorf("the broker may have records of this window: it has not answered for a part of them, and for this one it said: %w", err)}
	case of.lost:
		return &open{fmt.Errorf("the broker may have the record: an answer was lost, and after that it said: %w", err)}
	case isPassing(err):
		return &open{fmt.Errorf("the broker may have the record: it may have taken it before it said: %w", err)}
	case of.again:
		return &open{fmt.Errorf("the broker may have the record: it was sent again, and in the end it said: %w", err)}
	default:
		return err
	}
}

// noWord is a time-out of a broker that was reached and has not hung up, or its answer to a commit that may pass.
type noWord struct{ error }

func (e *noWord) Unwrap() error { return e.error }

func isNoWord(err error) bool {
	_, ok := errors.AsType[*noWord](err)
	return ok
}

// open is a failure whose outcome is unknown.
type open struct{ error }

func isOpen(err error) bool {
	_, ok := errors.AsType[*open](err)
	return ok
}

func (e *open) Unwrap() error { return e.error }

// Timeout is true: the outcome is unknown.
func (e *open) Timeout() bool { return true }

// fixes lists the next step for each error of the broker.
var fixes = []struct {
	err  *kerr.Error
	text string
}{
	{kerr.MessageTooLarge, "raise max.message.bytes of the topic, and max_bytes with it"},
	{kerr.InvalidTimestamp, "correct the clock of this machine or of the broker, or message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic"},
	{kerr.UnsupportedForMessageFormat, "the topic keeps messages in a format without headers: raise message.format.version"},
	{kerr.RecordListTooLarge, "raise segment.bytes of the topic"},
	{kerr.InvalidRecord, "a compacted topic takes no record without a key: give the source a key column"},
	{kerr.UnknownTopicOrPartition, "make the topic, or correct topic"},
	{kerr.UnknownTopicID, anewFix},
	{kerr.TopicAuthorizationFailed, "grant the user Write and Describe on the topic"},
	{kerr.ClusterAuthorizationFailed, "grant the user IdempotentWrite on the cluster"},
	{kerr.TransactionalIDAuthorizationFailed, "grant the user Write and Describe on the transactional id"},
	{kerr.SaslAuthenticationFailed, "correct user and password of sasl"},
	{kerr.IllegalSaslState, "this port takes no login: leave sasl out, or use the port that does"},
	{kerr.UnsupportedSaslMechanism, "correct mechanism of sasl, or allow it at the broker (sasl.enabled.mechanisms)"},
	{kerr.InvalidTransactionTimeout, "lower timeout, or raise transaction.max.timeout.ms at the broker"},
	{kerr.UnsupportedCompressionType, "choose another compression: none is taken by every broker, and zstd since Kafka 2.1"},
	{kerr.UnsupportedVersion, "the broker, or a proxy before it, is too old: replace it"},
	{kerr.InvalidRequiredAcks, "the broker, or a proxy before it, does not take acks=all, without which records could be lost: use another one"},
	{kerr.InvalidRequest, "see the log of the broker, or of a proxy before it: it does not take requests of this form"},
	{kerr.SecurityDisabled, "this broker has security off: leave sasl out"},
	{kerr.PolicyViolation, "see which policy the broker, or a proxy before it, has for producers: it may ask for another compression or transactional_id"},
	{kerr.NotEnoughReplicas, "bring replicas back until there are min.insync.replicas of them"},
	{kerr.NotLeaderForPartition, leaderFix},
	{kerr.LeaderNotAvailable, leaderFix},
	{kerr.OutOfOrderSequenceNumber, numbersFix},
	{kerr.UnknownProducerID, numbersFix},
}

const numbersFix = "the broker does not have what this producer has sent, or has other records under its number: it may have lost its data, or an older copy of them was put back. " +
	"The next attempt looks whether what this worker saw acknowledged is there; if it has started since, compare the topic with the source"

const leaderFix = "bring back the broker that leads the partition, or wait for the election of another one"

const anewFix = "the topic was deleted, and made anew if it is there: what was acknowledged and not read there is gone; make it if it is missing, and `seek` back to have it sent again, or `retry` to go on"

// fix returns the next step, after a semicolon.
func (s *Sink) fix(err error) string {
	switch {
	case s.isFenced(err):
		return "; another producer has taken its transactional_id (a newer worker of the process, or another process, which needs one of its own), " +
			"or an older copy of the broker's data was put back: the next attempt looks whether what was acknowledged is there"
	case isOldEpoch(err):
		return "; the client has begun to number anew for another partition: nothing to do, the next attempt has a producer id of its own"
	case s.config.TransactionalID != "" && isOneOf(err, uncoordinated):
		return "; " + coordinatorFix
	}
	for _, c := range fixes {
		if errors.Is(err, c.err) {
			return "; " + c.text
		}
	}
	if isDial(err) {
		return "; start the broker there, or correct the address: it is one of brokers, or a name that the cluster gives (advertised.listeners)"
	}
	var eof *kgo.ErrFirstReadEOF
	if errors.As(err, &eof) {
		return "; the broker hung up at the first word: it may expect TLS or sasl, or plain TCP where tls is given"
	}
	var late *lateError
	if errors.As(err, &late) {
		return "; the connection is kept, and the next call sends. Raise timeout, so that it is enough for both"
	}
	var connecting *unconnected
	if errors.Is(err, context.DeadlineExceeded) && errors.As(err, &connecting) {
		return "; check that the brokers can be reached by the names that the cluster gives them (advertised.listeners), or raise timeout: it may be too short to connect and log in"
	}
	if errors.Is(err, context.DeadlineExceeded) && isNoWord(err) {
		return "; see whether the partition has its in-sync replicas (min.insync.replicas), and whether its leader answers; raise timeout if it answers later"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "; check that the brokers can be reached by the names that the cluster gives them (advertised.listeners), or raise timeout"
	}
	return ""
}
