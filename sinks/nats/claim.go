package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// maxTail bounds how many messages before a claim the sink looks at. Two windows have no more. Records that landed
// further back are sent again, and the server notices that within its duplicate window.
const maxTail = 4000

// mostAhead bounds how many of them the sink asks for at once. aheadBytes bounds their size, by the average of the
// stream. The tail may differ from that average, so it does not bound their number below averageAhead. Each message
// may have megabytes, and the client drops data above 64 MiB. If an attempt fails, the next one asks for fewer.
const (
	mostAhead    = 512
	averageAhead = 32
	aheadBytes   = 4 << 20
	tailBytes    = 256 << 20 // of all of them
)

// claim is the right to publish for a process under an epoch. It holds as long as it is the last message on the
// fence's subject. The zero value is not a claim.
type claim struct {
	process  string
	epoch    cursor.Epoch
	fence    string
	sequence uint64
	identity string // of its message
}

// covers reports whether a record can be sent under the claim.
func (c claim) covers(d processor.Delivery) bool {
	return c.sequence != 0 && c.process == d.Process && c.epoch == d.Epoch
}

// take makes the link's claim one that covers a record. It replaces the last claim, unless that has a newer epoch.
// From then on nothing of older claims lands, so the tail is final when the sink reads it.
func (l *link) take(ctx context.Context, c Config, fence string, d processor.Delivery) error {
	if err := l.replace(ctx, c, fence, d); err != nil {
		return err
	}
	return l.readTail(ctx, c, d)
}

// look finds the stream for a new claim: the former claim no longer counts.
func (l *link) look(ctx context.Context, c Config, fence, subject string) error {
	l.claim = claim{}
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	return ended(ctx, l.find(ctx, c, fence, subject))
}

// replace writes the link's claim after the last one.
func (l *link) replace(ctx context.Context, c Config, fence string, d processor.Delivery) error {
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	before, err := l.lastClaim(ctx, c.Stream, fence, d)
	if err != nil {
		return ended(ctx, err)
	}
	err = l.write(ctx, fence, before, d)
	if code(err) == codeStoreFailed {
		err = l.noRoom(ctx, c, fence, err)
	}
	if err != nil {
		return ended(ctx, fmt.Errorf("claim the stream: %w", err))
	}
	return nil
}

// lastClaim returns the sequence of the last claim in the stream of that name, 0 if there is none.
func (l *link) lastClaim(ctx context.Context, name, fence string, d processor.Delivery) (uint64, error) {
	m, err := l.stream.GetLastMsgForSubject(ctx, fence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last claim: %w", undecoded(err))
	}
	if m.Header.Get(jetstream.MarkerReasonHeader) != "" {
		return m.Sequence, nil // the server wrote it in the place of a claim that has aged out
	}
	epoch, ok := number(m.Header, headerEpoch)
	switch process := m.Header.Get(headerProcess); {
	case !ok || process == "":
		return 0, fmt.Errorf("message %d on the fence's subject %q is not a claim: let nothing else publish there, and purge it", m.Sequence, fence)
	case m.Header.Get(jetstream.MsgIDHeader) != "":
		const fix = ": keep the subjects of records apart from the fences, which is sure if the fence begins with " + fencePrefix + "; then purge it"
		return 0, &of{fmt.Errorf("message %d on the fence's subject %q is a record of process %s"+fix, m.Sequence, fence, process),
			fmt.Sprintf("message %d on the fence's subject %q is a record"+fix, m.Sequence, fence)}
	case !isOf(m.Header, d):
		return 0, &of{fmt.Errorf("the fence's subject %q belongs to process %s: give each process one of its own", fence, process),
			fmt.Sprintf("the fence's subject %q belongs to another process: give each process one of its own", fence)}
	case isAnothers(m.Header.Get(headerOrigin), d):
		return 0, fmt.Errorf("the fence's subject %q belongs to another cursor, whose process is called %s, too: set another fence here, or rename the process; "+
			"if the other cursor is gone and no worker of it runs, nats stream purge %s --subject %s", fence, process, visible.Shell(name), visible.Shell(fence))
	case cursor.Epoch(epoch) == d.Epoch && isAnotherWorkers(m.Header.Get(headerWorker), d):
		return 0, claimedTwice(d, m.Sequence)
	default:
		return m.Sequence, superseded(d, epoch, m.Sequence)
	}
}

// isAnothers reports that a message belongs to another cursor than the record. A message of an earlier version does
// not name its cursor.
func isAnothers(origin string, d processor.Delivery) bool {
	return origin != "" && d.Origin != "" && origin != escape(d.Origin)
}

// isAnotherWorkers reports that a claim belongs to another worker than the record. A claim of an earlier version does
// not name its worker. A worker that makes its sink anew keeps its name, and so does one that goes on in its epoch.
func isAnotherWorkers(worker string, d processor.Delivery) bool {
	return worker != "" && d.Worker != "" && worker != workerOf(d)
}

// claimedTwice refuses a claim of an epoch that another worker has claimed. In one database every worker has epochs
// of its own. So another history of that database was delivered here.
func claimedTwice(d processor.Delivery, sequence uint64) error {
	return fmt.Errorf("message %d of the stream: epoch %d of process %q was claimed by another worker, and no two workers of one database have the same: "+
		"the database was restored from a backup, or is a copy of another one. If it was restored, stop the workers and say so: `ordered-dispatcher restored %s --reason …`, which moves the epoch on; "+
		"give a copy another stream", sequence, d.Epoch, d.Process, visible.Shell(d.Process))
}

// superseded refuses a record after a message of a newer epoch.
func superseded(d processor.Delivery, epoch int64, sequence uint64) error {
	if cursor.Epoch(epoch) <= d.Epoch {
		return nil
	}
	return fmt.Errorf("message %d of the stream is of epoch %d of process %q, and this worker has epoch %d: another one has taken over; "+
		"if the database was restored from a backup, stop the workers and say so: `ordered-dispatcher restored %s --reason …`, which moves the epoch on", sequence, epoch, d.Process, d.Epoch, visible.Shell(d.Process))
}

// write puts a claim after the one at sequence before. The server refuses it if that one is no longer the last.
func (l *link) write(ctx context.Context, fence string, before uint64, d processor.Delivery) error {
	config := l.stream.CachedInfo().Config
	header := nats.Header{}
	identify(header, d)
	if worker := workerOf(d); worker != "" {
		set(header, headerWorker, worker)
	}
	set(header, jetstream.ExpectedStreamHeader, config.Name)
	setNumber(header, jetstream.ExpectedLastSubjSeqHeader, before)
	if config.AllowRollup {
		set(header, jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	ack, err := l.js.PublishMsg(ctx, &nats.Msg{Subject: fence, Header: header}, jetstream.WithRetryAttempts(0))
	if err != nil {
		return err
	}
	l.claim = claim{d.Process, d.Epoch, fence, ack.Sequence, identity(header)}
	l.last = ack.Sequence
	return l.landedOn(ctx, fence, ack.Sequence)
}

// landedOn refuses a stream that stored the claim under another subject because the account maps the fence's own. The
// stream would take no record after it. A newer claim may have replaced it.
func (l *link) landedOn(ctx context.Context, fence string, at uint64) error {
	m, err := l.message(ctx, at)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Subject == fence {
		return nil
	}
	l.claim = claim{}
	if err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	const fix = "and fences nothing: let the account's mappings leave that subject out"
	return &of{fmt.Errorf("%w: what is published to the fence's subject %q comes there as %q, "+fix, errUnfit, fence, m.Subject),
		fmt.Sprintf("%v: what is published to the fence's subject %q comes there as another one, "+fix, errUnfit, fence)}
}

// readTail finds which of the record and those after it have landed under older claims. A record that an operator
// wants again has a larger sequence than all of them, even without the part that promotions have added.
func (l *link) readTail(ctx context.Context, c Config, d processor.Delivery) error {
	l.landed = map[string]bool{}
	state := l.stream.CachedInfo().State
	average := max(state.Bytes/max(state.Msgs, 1), 1)
	ahead := min(l.ahead, max(aheadBytes/average, averageAhead))
	first := max(state.FirstSeq, 1)
	tail := uint64(max(maxTail, 2*c.Window))
	lowest := max(first+tail, l.claim.sequence) - tail
	size := 0
	for next, n := l.claim.sequence, uint64(1); next > lowest && size < tailBytes; {
		n = min(n, next-lowest)
		messages, err := l.read(ctx, c, next-n, n)
		if err != nil {
			l.fewer(n)
			return err
		}
		for _, m := range slices.Backward(messages) {
			if m != nil {
				size += len(m.Data)
			}
			if whole, err := l.inTail(m, d); whole || err != nil {
				return err
			}
		}
		next -= n
		n = min(2*n, ahead)
	}
	return nil
}

// fewer makes the next attempt ask for fewer messages at once, since n did not come. If only one was asked for, that
// means nothing: the connection was lost.
func (l *link) fewer(n uint64) {
	if n > 1 {
		l.ahead = max(n/4, 1)
	}
}

// inTail notes a message, which may be missing. It reports whether all records before the message have landed.
func (l *link) inTail(m *jetstream.RawStreamMsg, d processor.Delivery) (whole bool, err error) {
	if m == nil || m.Subject == l.claim.fence || !isOf(m.Header, d) || isAnothers(m.Header.Get(headerOrigin), d) {
		return false, nil // another publisher's
	}
	sequence, ok := number(m.Header, headerSequence)
	if !ok {
		return false, nil
	}
	epoch, _ := number(m.Header, headerEpoch)
	if err := superseded(d, epoch, m.Sequence); err != nil {
		return false, err
	}
	if sequence%cursor.HistoryGap < d.Sequence%cursor.HistoryGap {
		return m.Header.Get(headerReplay) == "", nil
	}
	id, _, _ := strings.Cut(m.Header.Get(jetstream.MsgIDHeader), afterID)
	l.landed[id] = true
	return false, nil
}

// read returns n messages from a sequence on, with nil for a message that is not there. It asks for all at once: over
// a slow link, one after the other takes too long.
func (l *link) read(ctx context.Context, c Config, first, n uint64) ([]*jetstream.RawStreamMsg, error) {
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	messages := make([]*jetstream.RawStreamMsg, n)
	group, asking := errgroup.WithContext(ctx)
	for i := range messages {
		group.Go(func() (err error) {
			messages[i], err = l.message(asking, first+uint64(i))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				messages[i], err = nil, nil
			}
			if err != nil {
				return fmt.Errorf("read message %d of the stream: %w", first+uint64(i), err)
			}
			return nil
		})
	}
	return messages, ended(ctx, group.Wait())
}

// idOf returns the id under which a record goes out.
func (l *link) idOf(d processor.Delivery) string {
	id := messageID(d)
	return cmp.Or(l.others[id], id)
}

// inTheWay makes a record go out under another id, since a different message of the stream has the record's own id.
func (l *link) inTheWay(d processor.Delivery, at uint64) {
	id := messageID(d)
	l.others[id] = fmt.Sprint(id, afterID, at)
}

// has reports whether the tail has a record.
func (l *link) has(d processor.Delivery) bool { return len(l.landed) > 0 && l.landed[messageID(d)] }
