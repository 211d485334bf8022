package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

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

// conditions are the broker's words on what all records have in common, and none can help:
// the time of sending is ours, and a topic that was deleted and made anew had the right name.
var conditions = []*kerr.Error{kerr.InvalidTimestamp, kerr.UnknownTopicID}

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
}

// refusesUs reports whether every record meets what the broker says. A topic that is
// not there is that for all records only if none of them has a part in its name.
func (s *Sink) refusesUs(err error) bool {
	return isOneOf(err, denials) || s.topic.Fixed() && isOneOf(err, []*kerr.Error{kerr.UnknownTopicOrPartition, kerr.UnknownTopicID})
}

// fencings say that the producer's epoch is not the last one: another producer has
// taken the transactional id, or the coordinator has given up a transaction that
// took too long.
var fencings = []*kerr.Error{kerr.ProducerFenced, kerr.InvalidProducerEpoch}

func isFenced(err error) bool { return isOneOf(err, fencings) }

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

// unreached marks what is no word on a record. That there is no such topic may be one:
// see refusesUs.
func unreached(err error) error {
	if isOneOf(err, []*kerr.Error{kerr.UnknownTopicOrPartition, kerr.UnknownTopicID}) {
		return err
	}
	return processor.Unreached(err)
}

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
func unconfirmed(err error, asked int64) error {
	var answer *kerr.Error
	if errors.As(err, &answer) && asked == 1 && !answer.Retriable && answer != kerr.UnknownServerError {
		return &uncommitted{err}
	}
	return &open{fmt.Errorf("the commit may have happened: %w", err)}
}

// unanswered is what became of records that were sent. Without a word of the broker on
// them, or with one that is none, it may have them.
func unanswered(err error) error {
	var answer *kerr.Error
	if isRefusal(err) || errors.As(err, &answer) && answer != kerr.UnknownServerError {
		return err
	}
	return &open{fmt.Errorf("the broker may have the record: %w", err)}
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
	{kerr.UnknownTopicID, "the topic was deleted and made anew: what was acknowledged before and not read there is gone; `seek` back to have it sent again, or `retry` to go on"},
	{kerr.TopicAuthorizationFailed, "grant the user Write and Describe on the topic"},
	{kerr.ClusterAuthorizationFailed, "grant the user IdempotentWrite on the cluster"},
	{kerr.TransactionalIDAuthorizationFailed, "grant the user Write and Describe on the transactional id"},
	{kerr.SaslAuthenticationFailed, "correct user and password of sasl"},
	{kerr.IllegalSaslState, "this port takes no login: leave sasl out, or use the port that does"},
	{kerr.UnsupportedSaslMechanism, "correct mechanism of sasl, or allow it at the broker (sasl.enabled.mechanisms)"},
	{kerr.InvalidTransactionTimeout, "lower timeout, or raise transaction.max.timeout.ms at the broker"},
	{kerr.NotEnoughReplicas, "bring replicas back until there are min.insync.replicas of them"},
	{kerr.OutOfOrderSequenceNumber, "the broker has lost what it had acknowledged: compare the topic with the source"},
	{kerr.UnknownProducerID, "the broker has lost what it had acknowledged: compare the topic with the source"},
	{kerr.ProducerFenced, fencedFix},
	{kerr.InvalidProducerEpoch, fencedFix},
}

const fencedFix = "another producer has taken its transactional_id: a newer worker of the process, or another process, which needs one of its own"

// fix begins with a semicolon.
func fix(err error) string {
	for _, c := range fixes {
		if errors.Is(err, c.err) {
			return "; " + c.text
		}
	}
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return "; start the broker there, or correct the address: it is one of brokers, or a name that the cluster gives (advertised.listeners)"
	}
	var eof *kgo.ErrFirstReadEOF
	if errors.As(err, &eof) {
		return "; the broker hung up at the first word: it may expect TLS or sasl, or plain TCP where tls is given"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "; see whether the brokers, by the names that the cluster gives them (advertised.listeners), are reached"
	}
	return ""
}
