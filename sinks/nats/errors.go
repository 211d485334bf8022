package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Codes of the server that the client has no names for.
const (
	codeAccountFull       jetstream.ErrorCode = 10002
	codeNotAvailable      jetstream.ErrorCode = 10008
	codeNoLeader          jetstream.ErrorCode = 10009
	codeNoResources       jetstream.ErrorCode = 10023
	codeNoMemory          jetstream.ErrorCode = 10028
	codeNoStorage         jetstream.ErrorCode = 10047
	codeOtherStream       jetstream.ErrorCode = 10060
	codeOverlap           jetstream.ErrorCode = 10065
	codeWrongLastID       jetstream.ErrorCode = 10070
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeHeadersTooLarge   jetstream.ErrorCode = 10097
	codeSealed            jetstream.ErrorCode = 10109
	codeStreamOffline     jetstream.ErrorCode = 10118
	codeNoLimits          jetstream.ErrorCode = 10120
	codeDuplicateOnItsWay jetstream.ErrorCode = 10158
)

const fixRoom = "JetStream has no room left on the server or in the account: raise max_file (max_mem for streams in memory) in the server's jetstream section or in the account's, " +
	"or remove messages (purge what was read, or delete a stream)"

// fixes lists the next step of an operator for each error of the server.
var fixes = map[jetstream.ErrorCode]string{
	codeNotAvailable:                       "the cluster has no leader for JetStream: start its servers",
	codeNoLeader:                           "the cluster has no leader for JetStream: start its servers",
	codeNoResources:                        fixRoom,
	codeAccountFull:                        fixRoom,
	codeNoMemory:                           fixRoom,
	codeNoStorage:                          fixRoom,
	codeNoLimits:                           "the account has no JetStream limits for this number of replicas: set them",
	jetstream.JSErrCodeJetStreamNotEnabled: "start the server with JetStream (-js)",
	jetstream.JSErrCodeJetStreamNotEnabledForAccount:   "enable JetStream for the account of this user",
	jetstream.JSErrCodeStreamNotFound:                  "make the stream (nats stream add), or give declare to have it made",
	codeOtherStream:                                    "another stream takes this subject: correct stream or subject",
	codeOverlap:                                        "another stream takes one of the subjects: correct declare.subjects or fence",
	codeStoreFailed:                                    "the stream is full (discard new) or cannot store: raise max_msgs or max_bytes (with discard_new_per_subject, max_msgs_per_subject), let consumers acknowledge, or free the disk",
	codeSealed:                                         "the stream is sealed and takes nothing any more: name another one",
	codeStreamOffline:                                  "the stream is offline: start the servers that hold it",
	codeDuplicateOnItsWay:                              "the server has not finished an earlier attempt: it drops that after the duplicate window at the latest",
	jetstream.JSErrCodeStreamMessageExceedsMaximum:     "raise max_msg_size of the stream, or skip the record",
	codeHeadersTooLarge:                                "the headers of a message have at most 64 KiB: make them smaller, or skip the record",
	jetstream.JSErrCodeStreamWrongLastSequence:         "another worker has claimed the stream for this process, or the claim was removed: the next attempt finds out",
	jetstream.JSErrCodeStreamWrongLastSequenceConstant: "another worker has claimed the stream for this process, or is about to: the next attempt finds out",
}

// errAgain: the server did not take the record, since the chain was broken or its id belongs to another message. The
// record goes out again.
var errAgain = errors.New("it was not taken")

// errTooLarge: the client refused the record, by the limit that the server gave when it connected.
var errTooLarge = errors.New("it is too large for the server")

// refusal is an error of the server or of the protocol about one record; the link is intact.
func (s *Sink) refusal(d processor.Delivery, err error) error {
	return outcome.AboutRecord(fmt.Errorf("publish record %q to %s: %w", visible.Cut(d.ID), s, err))
}

// unsent is a failure before anything was sent.
func (s *Sink) unsent(err error) error {
	return ours(err, processor.Unreached(fmt.Errorf("publish to %s: nothing was sent: %w%s", s, outcome.Known(err), nextStep(err))))
}

// unsentNow is unsent for a record whose earlier message may have had no answer.
func (s *Sink) unsentNow(d processor.Delivery, err error) error {
	if s.unheard != messageID(d) {
		return s.unsent(err)
	}
	return s.unsent(fmt.Errorf("this holds for this attempt; an earlier one had no answer, and its message may have arrived, in the stream or at a subscriber of its subject: %w", err))
}

// ours marks an error as a refusal of us if the server's error is one.
func ours(word, err error) error {
	if refusesUs(word) {
		return processor.Refused(err)
	}
	return err
}

// refusesUs reports whether the server's error, or the state of the stream, has nothing to do with a record: our
// login, our rights, a stream that is missing or unfit. A missing leader, missing responders and a limit of
// connections pass by themselves.
func refusesUs(err error) bool {
	switch code(err) {
	case jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeJetStreamNotEnabledForAccount, codeSealed:
		return true
	}
	for _, word := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrPermissionViolation, errUnfit, errSetBack} {
		if errors.Is(err, word) {
			return true
		}
	}
	return false
}

// errUnfit: the stream cannot take the records of this process.
var errUnfit = errors.New("the stream is unfit")

// failed is a failure with a record on its way. A connection that ends leaves the outcome as open as a time-out does.
func (s *Sink) failed(err error) error {
	if refusesUs(err) {
		return ours(err, fmt.Errorf("publish to %s: %w%s", s, err, nextStep(err)))
	}
	return outcome.Unknown(fmt.Errorf("publish to %s: the server may have the record: %w%s", s, err, nextStep(err)))
}

// besideAnOpenOne is the failure of a record after which others were sent that have no answer. Whatever the server
// answered about this one, it may have those.
func besideAnOpenOne(failure error) error {
	err := fmt.Errorf("%w; the server may have records that were sent after this one: it has not answered for them", outcome.Text(failure))
	if processor.IsUnreached(failure) {
		return processor.Unreached(outcome.Outage(err))
	}
	return outcome.Unknown(err)
}

// unanswered is the error of a message that the server did not answer. The client writes when it has time to: after
// the cut, it never writes a message that it had not begun to write.
func (s *Sink) unanswered(p sent, err error) error {
	s.link.cut()
	if s.link.written() == p.before {
		return s.unsent(err)
	}
	s.unheard, _, _ = strings.Cut(p.id, afterID)
	return s.failed(err)
}

// answered sorts the server's answers about a record.
func (s *Sink) answered(ctx context.Context, d processor.Delivery, p sent, err error) error {
	switch code(err) {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum, codeHeadersTooLarge:
		return s.refusal(d, processor.Permanent(coded(err)))
	case codeStoreFailed:
		return s.refusal(d, processor.Unreached(s.link.notStored(ctx, s.config, p.subject, err)))
	case codeOtherStream:
		s.link.claim = claim{} // the next attempt looks, and publishes nothing there
		return s.refusal(d, processor.Unreached(coded(err)))
	case 0:
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			s.link.claim = claim{} // the stream may be gone: the next attempt looks
			return s.refusal(d, processor.Unreached(fmt.Errorf("no stream takes subject %q (no responders): the next attempt looks whether the stream is there and takes it; "+
				"or JetStream is not running", s.subject.Shown(p.subject))))
		}
		return s.unanswered(p, s.link.elsewhere(ctx, s.config, p.subject, err))
	default:
		if takesNone(err) {
			return s.refusal(d, processor.Unreached(coded(err)))
		}
		return s.refusal(d, ours(err, coded(err)))
	}
}

// takesNone reports whether the server's error is not about this record: it would have refused any other record, too.
func takesNone(err error) bool {
	switch code(err) {
	case codeNoResources, codeAccountFull, codeNoMemory, codeNoStorage, codeNoLimits: // there is no room
		return true
	case codeNotAvailable, codeNoLeader, codeStreamOffline, jetstream.JSErrCodeJetStreamNotEnabled:
		return true
	case codeDuplicateOnItsWay: // the server may still take an earlier attempt of the record
		return true
	default:
		return isConflict(err) // the claim is gone, or is not the last one
	}
}

// coded is an error of the server, with its code and the fix.
func coded(err error) error {
	return fmt.Errorf("error %d of the server: %w%s", code(err), err, nextStep(err))
}

// code returns the server's error code, or 0.
func code(err error) jetstream.ErrorCode {
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	return 0
}

// isConflict reports that the stream is not in the state that the message expected.
func isConflict(err error) bool {
	switch code(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, codeWrongLastID:
		return true
	default:
		return false
	}
}

func refused(format string, args ...any) error {
	return processor.Permanent(fmt.Errorf(format, args...))
}

// nextStep returns the fix, as the end of a message.
func nextStep(err error) string {
	var (
		certificate *tls.CertificateVerificationError
		network     *net.OpError
	)
	switch fix := fixes[code(err)]; {
	case fix != "":
		return "; " + fix
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired):
		return "; correct user and password, token, credentials or nkey"
	case errors.Is(err, nats.ErrNoResponders):
		return "; start the server with JetStream (-js), or what its cluster lacks for a leader"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "; let the user publish to subject, fence and $JS.API.>, and subscribe to _INBOX.>"
	case errors.Is(err, nats.ErrNoServers), errors.As(err, &network) && network.Op == "dial":
		return "; start the server there, or correct host and port in url"
	case errors.As(err, &certificate):
		return "; give the authority of the server's certificate as tls.ca, or the name in it as tls.server_name"
	case errors.Is(err, nats.ErrSecureConnRequired):
		return "; write the url with tls://, or give tls"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "; the server does not offer TLS: write the url with nats:// and without tls"
	default:
		return ""
	}
}
