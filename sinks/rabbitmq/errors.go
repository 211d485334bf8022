package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// errNack: the broker could not take the message, as when a queue with overflow reject-publish is full.
var errNack = errors.New("the broker refused it (nack): a queue is full, or failed")

// errEnded: the connection was closed for an unknown reason.
var errEnded = errors.New("the connection was closed")

// refusal is an error of the broker or of the protocol about one record; the link is intact.
func (s *Sink) refusal(d processor.Delivery, err error) error {
	return outcome.AboutRecord(fmt.Errorf("publish record %q to %s: %w", visible.Cut(d.ID), s, err))
}

// unroutable is the broker's error that no queue is bound for a record's routing key. If the key is the same for all
// records, the error is not about this one.
func (s *Sink) unroutable(err error) error {
	if s.key.Fixed() {
		return processor.Unreached(err)
	}
	return err
}

// unsent is a failure before anything was sent.
func (s *Sink) unsent(err error) error {
	return s.ours(err, processor.Unreached(fmt.Errorf("publish to %s: nothing was sent: %w%s", s, outcome.Known(err), s.nextStep(err))))
}

// noTime leaves a record to the next call. It is not Unreached: for that, a daemon would look for other credentials.
func (s *Sink) noTime() error {
	return outcome.NoTime(fmt.Errorf("publish to %s: nothing was sent: the call has no time left for another confirm", s))
}

// notTaken is the broker's refusal of the only record on its way, which does not blame the record.
func (s *Sink) notTaken(err error) error {
	return s.ours(err, processor.Unreached(fmt.Errorf("publish to %s: %w%s", s, err, s.nextStep(err))))
}

// failed is a failure with a record on its way. A connection that ends leaves the outcome as open as a time-out does.
// So does a refusal of one of several records: the broker does not say which one it means, and has those before it.
func (s *Sink) failed(err error) error {
	doubt := "the broker may have the record"
	if n := len(s.link.window); n > 1 && isOfOne(err) {
		doubt += fmt.Sprintf(", and may mean another one of the %d that are on their way", n)
	}
	open := fmt.Errorf("publish to %s: %s: %w%s", s, doubt, err, s.nextStep(err))
	switch {
	case s.refusesUs(err):
		return processor.Refused(outcome.Outage(open))
	case s.noWord(err):
		return processor.Unreached(outcome.Outage(open))
	default:
		return outcome.Unknown(open)
	}
}

// noWord reports whether a failure is not about a record. Either the broker had an alarm during the call, under which
// it reads nothing, or it ends all connections. Where the alarm is over, the confirm may have been on its way.
func (s *Sink) noWord(err error) bool {
	return code(err) == amqp.ConnectionForced || s.link.alarm.met()
}

// besideAnOpenOne is the failure of a record after which others were sent that have no answer. Whatever the broker
// answered about this one, it may have those.
func (s *Sink) besideAnOpenOne(failure error) error {
	err := fmt.Errorf("%w; the broker may have records that were sent after this one: it has not answered for them", outcome.Text(failure))
	if processor.IsUnreached(failure) {
		return processor.Unreached(outcome.Outage(err))
	}
	return outcome.Unknown(err)
}

// unconfirmed is the error of a record on its way for which the broker sent no answer in time.
func (s *Sink) unconfirmed(p sent, err error) error {
	if reason := s.link.alarm.reason(); reason != nil && p.earlier { // its outcome is as open as before, and this attempt did not change it
		return processor.Unreached(outcome.Unknown(fmt.Errorf("publish to %s: nothing was sent: the message of an earlier attempt waits there: %w", s, reason)))
	}
	return s.failed(s.link.explained(err))
}

// tooLarge is the broker's error about the only record on its way.
func (s *Sink) tooLarge(err error) error {
	return processor.Permanent(fmt.Errorf("publish to %s: %w%s", s, err, s.nextStep(err)))
}

// ours marks an error as a refusal of us if the broker's error is one.
func (s *Sink) ours(word, err error) error {
	if s.refusesUs(word) {
		return processor.Refused(err)
	}
	return err
}

// refusesUs reports whether the broker's error is about our login, our rights or the exchange. Every record meets it,
// until somebody changes something. An exchange that the sink declares is made again by the next attempt.
func (s *Sink) refusesUs(err error) bool {
	switch code(err) {
	case amqp.AccessRefused:
		return true
	case amqp.NotAllowed:
		return !limited(err)
	case amqp.NotFound:
		return s.config.Type == ""
	default:
		return errors.Is(err, amqp.ErrSASL) || errors.Is(err, errLogin) || errors.Is(err, errDeclare) || errors.Is(err, errType)
	}
}

// limitReached matches the end of RabbitMQ's error about a limit: on the connections of a user or a virtual host, or
// on the channels of a user or a node. RabbitMQ has no code of its own for that.
var limitReached = regexp.MustCompile(`limit (\(\d+\) is reached|of \(\d+\))$`)

// limited reports whether there are too many connections or channels, which passes by itself.
func limited(err error) bool {
	var amqpErr *amqp.Error
	return errors.As(err, &amqpErr) && amqpErr.Code == amqp.NotAllowed && limitReached.MatchString(amqpErr.Reason)
}

// errLogin: the broker hung up on our login twice in a row. RabbitMQ gives no reason to a client that does not ask
// for one. If it happens once, the broker may have died.
var errLogin = errors.New("the broker hung up at the login, twice in a row")

// errDeclare: the exchange is not as the configuration describes it.
var errDeclare = errors.New("the exchange is of another type, or not durable")

// errType: the broker has no exchanges of the configured type, which a plugin would add.
var errType = errors.New("the broker does not know the exchange's type")

// lateError: the time for a connection ran out. Each attempt meets it again if the link is too slow for that time.
type lateError struct {
	timeout  time.Duration
	answered bool // the broker has answered, as over a link whose round trips take long
}

func (e lateError) Error() string {
	taken := fmt.Sprintf("the connection took longer than timeout (%v), and the broker ", e.timeout)
	if e.answered {
		return taken + "answers; raise timeout"
	}
	return taken + "has not answered; see whether RabbitMQ answers at the address in url, or raise timeout"
}

// Unwrap makes it a time-out.
func (lateError) Unwrap() error { return context.DeadlineExceeded }

// silentClose is less than the three seconds that RabbitMQ waits before it hangs up on a login that it refuses. A
// connection that ends sooner was ended by the network.
const silentClose = 2 * time.Second

// hungUp counts how often in a row the broker ended a connection at the login, and decides when that is a refusal.
// The client takes any end for a refusal.
func (s *Sink) hungUp(err error, l *link, took time.Duration) error {
	switch {
	case !errors.Is(err, amqp.ErrCredentials) || !l.ended():
		s.hangUps = 0
		return err
	case took < silentClose:
		s.hangUps = 0
		return fmt.Errorf("%w at the login", errEnded)
	}
	if s.hangUps++; s.hangUps < 2 {
		return err
	}
	return fmt.Errorf("%w: %w", errLogin, err)
}

// closedBy returns why a channel was closed.
func closedBy(err *amqp.Error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// code returns the broker's code, or 0. The client uses some codes itself for errors of the network: 501 for its end.
func code(err error) int {
	var amqpErr *amqp.Error
	if errors.As(err, &amqpErr) && amqpErr.Server {
		return amqpErr.Code
	}
	return 0
}

// isOfOne reports whether the broker closed the channel, as it does over one message.
func isOfOne(err error) bool {
	var amqpErr *amqp.Error
	return errors.As(err, &amqpErr) && amqpErr.Server && amqpErr.Recover
}

// isTooLarge reports that a message is too large. RabbitMQ closes the channel with 406 for a message above its
// max_message_size, and with 311 or 501 for one that fits into no frame. Nothing else that the sink publishes causes
// a 406.
func isTooLarge(err error) bool {
	switch code(err) {
	case amqp.ContentTooLarge, amqp.PreconditionFailed, amqp.FrameError:
		return true
	default:
		return false
	}
}

// nextStep returns the fix for the broker's error. A refused login is an error of the client, without the mark of the
// server.
func (s *Sink) nextStep(err error) string {
	var network *net.OpError
	switch {
	case limited(err):
		return "; end connections or channels of others, or raise the limit"
	case errors.As(err, &network) && network.Op == "dial":
		return "; start RabbitMQ there, or correct host and port in url"
	case errors.Is(err, errType):
		return "; enable the plugin that has the exchange's type, or correct type"
	case errors.Is(err, amqp.ErrCredentials):
		return "; correct user and password in url"
	case errors.Is(err, amqp.ErrVhost):
		return "; correct the vhost in url, or the user's right to it"
	}
	switch code(err) {
	case amqp.AccessRefused:
		return "; correct user, password, or the user's rights on the vhost and the exchange"
	case amqp.NotFound:
		if s.config.Type != "" {
			return "; the next attempt declares the exchange again"
		}
		return "; declare the exchange, or give its type to have it declared"
	case amqp.NotAllowed:
		return "; correct the vhost, or the user's right to it"
	case amqp.PreconditionFailed:
		return "; the message may be too large (max_message_size), or the exchange is of another type than configured"
	default:
		return ""
	}
}
