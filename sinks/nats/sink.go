package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// Sink publishes records to one stream. It implements processor.BatchSink and is
// safe for concurrent use; calls take turns on its one connection.
type Sink struct {
	config         Config
	subject, fence *route.Template
	guard          *guard

	mu   sync.Mutex
	link *link // nil: to be opened
	// alone is how many records go out one at a time, because the last chain broke.
	alone int
	// gone: the stream to be declared was missing, and the sink has reported that.
	gone bool
	// unheard is the id of the last record whose message had no answer.
	unheard string
	// stood is the last acknowledgement of the stream, over any connection.
	stood stood
	// ahead is how many messages of a tail are asked for at once.
	ahead uint64
}

var _ processor.BatchSink = (*Sink)(nil)

// New makes a sink. It connects with the first delivery, not before.
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure nats sink: %w", err)
	}
	subject, _ := route.Tokens(c.Subject) // validated
	fence, _ := route.Tokens(c.Fence)
	return &Sink{config: c, subject: subject, fence: fence, guard: newGuard(c), ahead: mostAhead}, nil
}

// String names the servers and the stream.
func (s *Sink) String() string { return s.config.String() }

// GoString is String, so that no verb prints the password.
func (s *Sink) GoString() string { return s.String() }

// Close closes the connection. A later delivery opens another.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		s.link.connection.Close()
	}
	s.link = nil
	return nil
}

// DeliverBatch publishes records in order. It returns how many of them, from the first on, the stream has. An error
// that is a time-out (outcome.IsUnknown) leaves the outcome of its record unknown.
func (s *Sink) DeliverBatch(ctx context.Context, ds []processor.Delivery) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := 0; n < len(ds); {
		run := sameEpoch(ds[n:])
		done, err := s.deliver(ctx, run)
		n += done
		if err != nil {
			return n, s.guard.of(ds).Error(err)
		}
	}
	return len(ds), nil
}

// sameEpoch returns the records that one claim covers: in practice all.
func sameEpoch(ds []processor.Delivery) []processor.Delivery {
	n := 1
	for n < len(ds) && ds[n].Process == ds[0].Process && ds[n].Epoch == ds[0].Epoch {
		n++
	}
	return ds[:n]
}

// deliver publishes records of one epoch. If it returns without an error before the last record, the rest needs a new
// connection.
func (s *Sink) deliver(ctx context.Context, ds []processor.Delivery) (int, error) {
	anew := s.link == nil || s.link.dead()
	if anew {
		l, err := s.open(ctx)
		if err != nil {
			return 0, s.unsentNow(ds[0], err)
		}
		s.link = l
	}
	defer context.AfterFunc(ctx, s.link.cut)() // a write that the server does not read ignores the context
	if err := s.claim(ctx, ds[0]); err != nil {
		s.drop()
		return 0, s.unsentNow(ds[0], err)
	}
	n := 0
	for n < len(ds) && s.link.has(ds[n]) {
		n++
	}
	done, err := s.publishAll(ctx, ds[n:])
	if err != nil && !outcome.IsAboutRecord(err) {
		s.drop()
	}
	if errors.Is(err, errTooLarge) && !anew {
		s.drop() // a reload may have raised the limit, and the server reports that only to a new connection
		return n + done, nil
	}
	return n + done, err
}

// recognise compares the link's stream with the stream that has acknowledged before. An older copy has the same time
// of creation, and messages that others have published since may have the numbers of the lost ones.
func (s *Sink) recognise(ctx context.Context, missing bool, d processor.Delivery) error {
	if missing {
		return s.stood.missing(d.Epoch)
	}
	if s.link.stream == nil {
		return nil // it could not be looked at
	}
	lacks := false
	if s.stood.sequence != 0 {
		var err error
		if lacks, err = s.link.lacks(ctx, s.config, s.stood); err != nil {
			return err
		}
	}
	return s.stood.found(s.link.stream.CachedInfo().Created, lacks, d.Epoch)
}

// claim makes the link's claim cover a record.
func (s *Sink) claim(ctx context.Context, d processor.Delivery) error {
	if lost := s.stood.undecided(d.Epoch); lost != nil {
		return lost
	}
	if s.link.claim.covers(d) {
		return nil
	}
	fence, err := s.fenceOf(d)
	if err != nil {
		return err
	}
	subject, err := s.subject.Of(d)
	if err != nil {
		subject = "" // the record's own fault, which publish finds
	}
	config := s.config
	if !cursor.IsFirst(d.Sequence, d.Epoch) && !s.gone {
		config.exists = true
	}
	err = s.link.look(ctx, config, fence, subject)
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	s.gone = missing && s.config.Declare != nil
	if lost := s.recognise(ctx, missing, d); lost != nil { // before the claim, which may take the number of a lost message
		return lost
	}
	if err == nil {
		err = s.link.take(ctx, s.config, fence, d)
	}
	if c := s.link.claim; c.sequence != 0 {
		if lost := s.stood.next(c.sequence, c.identity, d.Epoch, time.Time{}); lost != nil {
			return lost
		}
	}
	s.ahead = s.link.ahead
	if err == nil {
		s.ahead = min(2*s.ahead, mostAhead)
	}
	if s.gone {
		return fmt.Errorf("there is no stream %q, and record %d is not the first one of process %q: if it was deleted, what was not read yet is lost there, "+
			"and a seek back sends it again; the next attempt makes the stream", s.config.Stream, d.Sequence, d.Process)
	}
	return err
}

func (s *Sink) fenceOf(d processor.Delivery) (string, error) {
	fence, err := s.fence.Of(d)
	if err == nil {
		err = subjectFault(fence)
	}
	if err != nil {
		return "", fmt.Errorf("fence: the template gives no valid subject for process %q: %w; set another one", d.Process, err)
	}
	return fence, nil
}

func (s *Sink) drop() {
	s.link.cut()
	s.link = nil
}

// sent is a message on its way.
type sent struct {
	jetstream.PubAckFuture
	id      string
	subject string
	// sequence is the message's number in the stream, if no one else publishes there.
	sequence uint64
	chained  bool
	at       time.Time // before it was sent
	before   int64     // bytes that the link had written before it
}

// publishAll keeps the window full and takes the acknowledgements in order.
func (s *Sink) publishAll(ctx context.Context, ds []processor.Delivery) (acknowledged int, err error) {
	var window []sent
	var failure error // of the record that could not be published
	for next := 0; acknowledged < len(ds); {
		for failure == nil && next < len(ds) && len(window) < s.window() {
			var p sent
			if p, failure = s.publish(ctx, ds[next], window); failure != nil {
				break
			}
			window = append(window, p)
			next++
		}
		if len(window) == 0 {
			return acknowledged, failure
		}
		switch err := s.acknowledged(ctx, window[0], ds[acknowledged]); {
		case errors.Is(err, errAgain):
			s.alone = max(s.alone, len(window))
			if err := s.settle(ctx, window[1:]); err != nil {
				return acknowledged, err
			}
			window, next, failure = nil, acknowledged, nil
			continue
		case err != nil:
			return acknowledged, s.refuseRest(ctx, window[1:], err)
		}
		window = window[1:]
		acknowledged++
		s.alone = max(0, s.alone-1)
	}
	return acknowledged, nil
}

// window returns how many records may be on their way.
func (s *Sink) window() int {
	if s.alone > 0 {
		return 1
	}
	return s.config.Window
}

// subjectOf returns the subject of a record. fence is the subject of the claim, "" if there is none yet.
func (s *Sink) subjectOf(d processor.Delivery, fence string) (string, error) {
	subject, err := s.subject.Of(d)
	if err == nil {
		err = subjectFault(subject)
	}
	if err == nil && (subject == fence || strings.HasPrefix(subject, fencePrefix)) {
		err = errFence
	}
	if err != nil {
		return "", s.refusal(d, refused("its subject: %w; correct subject, or skip the record", err))
	}
	return subject, nil
}

// publish sends one record. A record that is the only one on its way expects the claim; any other expects the message
// before it in the chain. A replicated stream does not take a second message that expects the same claim before it
// has decided on the first.
func (s *Sink) publish(ctx context.Context, d processor.Delivery, window []sent) (sent, error) {
	subject, err := s.subjectOf(d, s.link.claim.fence)
	if err != nil {
		return sent{}, err
	}
	if err := s.link.takesSubject(ctx, s.config, subject); err != nil {
		return sent{}, outcome.AboutRecord(s.unsentNow(d, err)) // the link is intact
	}
	l := s.link
	p := sent{id: l.idOf(d), subject: subject, sequence: l.last + 1, at: time.Now(), before: l.written()}
	m, err := message(d, subject, p.id)
	if err != nil {
		return sent{}, s.refusal(d, err)
	}
	if len(window) == 0 {
		set(m.Header, jetstream.ExpectedStreamHeader, s.config.Stream)
		setNumber(m.Header, jetstream.ExpectedLastSubjSeqHeader, l.claim.sequence)
		set(m.Header, jetstream.ExpectedLastSubjSeqSubjHeader, l.claim.fence)
	} else {
		before := window[len(window)-1]
		setNumber(m.Header, jetstream.ExpectedLastSeqHeader, before.sequence)
		set(m.Header, jetstream.ExpectedLastMsgIDHeader, before.id)
		p.sequence, p.chained = before.sequence+1, true
	}
	p.PubAckFuture, err = l.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return sent{}, s.refusal(d, refused("%w: more than the %d bytes that it takes, headers included: "+
			"raise max_payload, or skip the record", errTooLarge, l.connection.MaxPayload()))
	case err != nil:
		return sent{}, s.unanswered(p, ended(ctx, errors.Join(err, l.cause())))
	}
	return p, nil
}

// acknowledged waits for the server's answer to the first message of the window.
func (s *Sink) acknowledged(ctx context.Context, p sent, d processor.Delivery) error {
	ack, err := s.answer(ctx, p)
	switch {
	case err == nil && !ack.Duplicate:
		if lost := s.taken(ctx, p, d, ack.Sequence); lost != nil {
			return s.failed(lost)
		}
		return nil
	case err == nil:
		return s.duplicate(ctx, p, d, ack.Sequence)
	case p.chained && isConflict(err):
		return errAgain
	case isConflict(err):
		s.link.claim = claim{}
	}
	return s.answered(ctx, d, p, err)
}

// taken notes that the stream has a message of ours. Since the message before it, an older copy of the stream may
// have been put back while the connection stayed. The claim is in that copy, so the server takes the message.
// Messages of others may have come up to the number of a message that the copy lacks, or past it. So the sink reads
// the message before this one again.
func (s *Sink) taken(ctx context.Context, p sent, d processor.Delivery, sequence uint64) error {
	now := time.Now()
	s.link.last = sequence
	s.link.fastest = min(s.link.fastest, now.Sub(p.at))
	if s.stood.sequence < sequence && !s.follows(p, sequence, now) {
		lacks, err := s.link.lacks(ctx, s.config, s.stood)
		if err != nil {
			// The record is there. The remembered message stays, and is read over a new link before anything else is sent.
			s.link.fail(fmt.Errorf("after record %d was acknowledged: %w", d.Sequence, err))
			return nil
		}
		if lost := s.stood.found(s.link.stream.CachedInfo().Created, lacks, d.Epoch); lost != nil {
			return lost
		}
	}
	return s.stood.next(sequence, identity(p.Msg().Header), d.Epoch, p.at)
}

// follows reports whether the message before the one acknowledged now was still there. Either the server has compared
// it in a chain, or there was no time to lose it.
func (s *Sink) follows(p sent, sequence uint64, now time.Time) bool {
	return p.chained && sequence == s.stood.sequence+1 || s.stood.isFresh(now, s.link.fastest)
}

// duplicate looks at the message that the server takes for the same as this one. Only the record itself counts as
// delivered. If another message is there, or none any more, the record goes out again under an id that names the
// message in its way.
func (s *Sink) duplicate(ctx context.Context, p sent, d processor.Delivery, at uint64) error {
	there, err := s.link.holds(ctx, s.config, at, p.id, d.Payload)
	if err != nil {
		return s.failed(fmt.Errorf("read message %d, which it takes for this one: %w", at, err))
	}
	if there {
		return nil
	}
	s.link.inTheWay(d, at)
	return errAgain
}

// answer returns the server's answer to a message, or a time-out or the end of the link if there is none. When the
// first message of a window has its answer, most others have theirs.
func (s *Sink) answer(ctx context.Context, p sent) (*jetstream.PubAck, error) {
	select {
	case ack := <-p.Ok():
		return ack, nil
	default:
	}
	wait, cancel := context.WithTimeoutCause(ctx, s.config.Timeout,
		fmt.Errorf("no acknowledgement within %v: %w", s.config.Timeout, context.DeadlineExceeded))
	defer cancel()
	select {
	case ack := <-p.Ok():
		return ack, nil
	case err := <-p.Err():
		return nil, err
	case <-s.link.closed:
		return nil, ended(ctx, s.link.lost())
	case <-wait.Done():
		return nil, context.Cause(wait)
	}
}

// settle waits until the server has refused the messages that were chained to a refused message. Only then may they
// be sent again.
func (s *Sink) settle(ctx context.Context, rest []sent) error {
	for _, p := range rest {
		ack, err := s.answer(ctx, p)
		switch {
		case err == nil && !ack.Duplicate:
			return s.failed(fmt.Errorf("the stream took message %d after it had refused an earlier one", ack.Sequence))
		case err != nil && code(err) == 0 && !errors.Is(err, jetstream.ErrNoStreamResponse):
			return s.failed(err)
		}
	}
	return nil
}

// refuseRest returns why a record failed, once nothing after it is on its way.
func (s *Sink) refuseRest(ctx context.Context, rest []sent, failure error) error {
	if !outcome.IsAboutRecord(failure) {
		return failure
	}
	if err := s.settle(ctx, rest); err != nil {
		return besideAnOpenOne(failure)
	}
	return failure
}
