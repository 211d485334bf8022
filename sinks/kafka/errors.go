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

// refusal is the protocol's word on one record.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// refusals are the broker's words on what is in a batch. They are final.
var refusals = []*kerr.Error{
	kerr.MessageTooLarge,
	kerr.RecordListTooLarge,
	kerr.InvalidRecord,
	kerr.InvalidTopicException,
}

// conditions are the broker's words after which it has taken nothing, and which no record can help:
// the time of sending is ours, a topic that was deleted had the right name, one that is missing may be made, and the next link
// gets a producer id in place of one that the coordinator has forgotten.
var conditions = []*kerr.Error{kerr.InvalidTimestamp, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InvalidProducerIDMapping,
	kerr.TransactionAbortable, kerr.InvalidTxnState, kerr.TransactionCoordinatorFenced}

// passing are the broker's words that it takes nothing now, and may take it later. The client has
// asked again for a while by then: see patience. REQUEST_TIMED_OUT and
// NOT_ENOUGH_REPLICAS_AFTER_APPEND are not among them: they leave open whether the broker took
// something, and the client never gives up after one of them. A leader that stepped down after it had
// taken a batch says NOT_LEADER, too, and one whose disk failed may have it: see unanswered.
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

// vague are the broker's words that leave open whether it took something.
var vague = []*kerr.Error{
	kerr.UnknownServerError,
	kerr.RequestTimedOut,
	kerr.NotEnoughReplicasAfterAppend,
	kerr.KafkaStorageError,
	kerr.NetworkException,
}

// isPassing reports whether no record can help it: a word of passing, or that the client could not
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
func isLoss(err error) bool { return outcomes.IsFinal(err) }

func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r) || isOneOf(err, refusals)
}

// denials are the broker's words on us: our login, our rights, our settings.
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
	kerr.PolicyViolation, // "request parameters": acks, compression, a transactional id. Of a record it is INVALID_RECORD
}

// refusesUs reports whether every record meets what the broker says. A topic that is
// not there is that for all records only if none of them has a part in its name.
func (s *Sink) refusesUs(err error) bool {
	return isOneOf(err, denials) || s.topic.Fixed() && isOneOf(err, []*kerr.Error{kerr.UnknownTopicOrPartition, kerr.UnknownTopicID})
}

// isOldEpoch reports whether the producer's epoch is not the last one. Without a transactional id it is the client itself that has
// taken another one, for a partition that refused its records.
func isOldEpoch(err error) bool {
	return isOneOf(err, []*kerr.Error{kerr.ProducerFenced, kerr.InvalidProducerEpoch})
}

// isFenced reports whether another producer has taken the transactional id, the coordinator has given up a transaction that
// took too long, or it has an older epoch, since its data were set back.
func (s *Sink) isFenced(err error) bool { return s.config.TransactionalID != "" && isOldEpoch(err) }

// errForgotten is a transaction in which the client took a new epoch, since the broker knows its producer id no more: retention has deleted
// all that it had sent to the partition. The coordinator has aborted what was sent under the old one.
var errForgotten = processor.Unreached(errors.New("the broker has forgotten the producer in the middle of the transaction; the next attempt begins another one"))

// errRenumbered is a window in which the client took a new epoch after an answer was lost, or after a batch was sent again. The broker may
// have that batch, and would take it once more under the new number.
var errRenumbered = errors.New("an answer was lost or unclear, and the client has begun to number anew since: sent once more, the record could be there twice")

// errUnread is a request with records that written cannot read, so that it could not keep the order of what it lets through.
var errUnread = processor.Unreached(errors.New("the client has written its records in a form that this version cannot check, so they are not sent: " +
	"go back to the version before, and report it"))

func isOneOf(err error, all []*kerr.Error) bool {
	for _, e := range all {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// known is a failure whose outcome is known, so it is no time-out to the processor,
// though a time-out may be its cause.
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

// uncommitted is a failure before the commit of a transaction.
type uncommitted struct{ error }

func (e *uncommitted) Error() string { return "nothing is committed: " + e.error.Error() }
func (e *uncommitted) Unwrap() error { return e.error }

// Timeout is false: the outcome is known.
func (e *uncommitted) Timeout() bool { return false }

// uncommittedCause is err without the word that nothing is committed, for an error
// that says more: nothing was sent.
func uncommittedCause(err error) error {
	if u, ok := errors.AsType[*uncommitted](err); ok {
		return u.error
	}
	return err
}

// unconfirmed is what became of a commit that failed: an answer of Kafka that is no is a
// no if it was asked once. The client asks again by itself after a lost connection, and a
// no to that says nothing of the first time. Anything else leaves it open.
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

// hungUp is err without the client's guess at a connection that ends before its first answer: that
// TLS or a login may be missing. This one has worked.
func hungUp(err error) error {
	var eof *kgo.ErrFirstReadEOF
	if errors.As(err, &eof) {
		return errors.New("the broker closed the connection before it answered")
	}
	return err
}

// isUnfinished reports whether time ran out although no broker hung up. What was reached is silent, or has said words that leave
// open whether it took something, and no record can help that.
func isUnfinished(err error, of requests) bool {
	return errors.Is(err, context.DeadlineExceeded) && !of.cut
}

// isWord reports whether an error is the broker's word on a record, or the client's own: the client gives up a batch
// only where its last request was answered.
func isWord(err error) bool {
	var answer *kerr.Error
	return isRefusal(err) || errors.As(err, &answer) || isPassing(err)
}

// unanswered is what became of records that were sent. Without a word of the broker on
// them, or with one that is none, it may have them. So it may if an answer was lost: the
// client asks again by itself, and a no to that says nothing of the first time. The same
// holds for a no to records that were sent again after another word, such as REQUEST_TIMED_OUT: the client does not
// say which that was. A word of passing follows others, or comes from
// a leader that stepped down after it had taken the batch.
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

// noWord is a time-out of a broker that was reached and has not hung up, or its word on a commit that may pass.
type noWord struct{ error }

func (e *noWord) Unwrap() error { return e.error }

func isNoWord(err error) bool {
	_, ok := errors.AsType[*noWord](err)
	return ok
}

// open is a failure whose outcome nobody knows.
type open struct{ error }

func isOpen(err error) bool {
	_, ok := errors.AsType[*open](err)
	return ok
}

func (e *open) Unwrap() error { return e.error }

// Timeout is true: the outcome is unknown.
func (e *open) Timeout() bool { return true }

// fixes are the next step for what the broker says.
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
	{kerr.SecurityDisabled, "this broker has no security: leave sasl out"},
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

// fix begins with a semicolon.
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
		return "; it is kept, and the next call sends. Raise timeout, so that it is enough for both"
	}
	var connecting *unconnected
	if errors.Is(err, context.DeadlineExceeded) && errors.As(err, &connecting) {
		return "; see whether the brokers are reached by the names that the cluster gives them (advertised.listeners), or raise timeout: it may be too short for the way to them and a login"
	}
	if errors.Is(err, context.DeadlineExceeded) && isNoWord(err) {
		return "; see whether the partition has its in-sync replicas (min.insync.replicas), and whether its leader answers; raise timeout if it answers later"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "; see whether the brokers, by the names that the cluster gives them (advertised.listeners), are reached, or raise timeout"
	}
	return ""
}
