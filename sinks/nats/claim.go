package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// maxTail bounds how many messages before a claim are looked at. What landed
// further back is sent again, which the server notices within its duplicate window.
const maxTail = 1000

// claim is the right to publish for a process under an epoch, as long as it is the
// last message on the fence's subject. The zero value is none.
type claim struct {
	process  string
	epoch    cursor.Epoch
	fence    string
	sequence uint64
}

// covers reports whether a record can be sent under the claim.
func (c claim) covers(d processor.Delivery) bool {
	return c.sequence != 0 && c.process == d.Process && c.epoch == d.Epoch
}

// take makes the link's claim one that covers a record: it replaces the last one,
// unless that is of a newer epoch. From then on nothing of older claims lands, so
// the tail is final when it is read.
func (l *link) take(ctx context.Context, c Config, fence, subject string, d processor.Delivery) error {
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	l.claim = claim{}
	if err := l.find(ctx, c, fence, subject); err != nil {
		return ended(ctx, err)
	}
	before, err := l.lastClaim(ctx, fence, d)
	if err != nil {
		return ended(ctx, err)
	}
	if err := l.write(ctx, fence, before, d); err != nil {
		return ended(ctx, fmt.Errorf("claim the stream: %w", err))
	}
	return ended(ctx, l.readTail(ctx, d))
}

// lastClaim returns the sequence of the last claim, 0 if there is none.
func (l *link) lastClaim(ctx context.Context, fence string, d processor.Delivery) (uint64, error) {
	m, err := l.stream.GetLastMsgForSubject(ctx, fence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last claim: %w", err)
	}
	epoch, ok := number(m.Header, headerEpoch)
	switch process := m.Header.Get(headerProcess); {
	case !ok || process == "":
		return 0, fmt.Errorf("message %d on the fence's subject %q is no claim: let nothing else publish there, and purge it", m.Sequence, fence)
	case process != escape(d.Process):
		return 0, fmt.Errorf("the fence's subject %q is that of process %s: give each process one of its own", fence, process)
	case isAnothers(m.Header.Get(headerOrigin), d):
		return 0, fmt.Errorf("the fence's subject %q is that of another cursor, whose process is called %s, too: set another fence here, or rename the process; "+
			"if the other cursor is gone and no worker of it runs, nats stream purge %s --subject %q", fence, process, l.stream.CachedInfo().Config.Name, fence)
	default:
		return m.Sequence, superseded(d, epoch, m.Sequence)
	}
}

// isAnothers reports that a claim is of another cursor than the record. One of an
// earlier version does not say whose it is.
func isAnothers(origin string, d processor.Delivery) bool {
	return origin != "" && d.Origin != "" && origin != escape(d.Origin)
}

// superseded refuses a record behind a message of a newer epoch.
func superseded(d processor.Delivery, epoch int64, sequence uint64) error {
	if cursor.Epoch(epoch) <= d.Epoch {
		return nil
	}
	return fmt.Errorf("message %d of the stream is of epoch %d of process %q, and this worker has epoch %d: another one has taken over; "+
		"if the database was restored from a backup, purge the fence's subject once no other worker runs", sequence, epoch, d.Process, d.Epoch)
}

// write puts a claim behind the one at sequence before; the server refuses it if
// that is no longer the last.
func (l *link) write(ctx context.Context, fence string, before uint64, d processor.Delivery) error {
	config := l.stream.CachedInfo().Config
	header := nats.Header{}
	identify(header, d)
	if d.Origin != "" {
		set(header, headerOrigin, escape(d.Origin))
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
	l.claim = claim{d.Process, d.Epoch, fence, ack.Sequence}
	l.last = ack.Sequence
	return nil
}

// readTail finds what landed of the record and those behind it under older claims.
// A record that an operator wants again has a larger sequence than all of it.
func (l *link) readTail(ctx context.Context, d processor.Delivery) error {
	l.landed = map[string]bool{}
	first := max(l.stream.CachedInfo().State.FirstSeq, 1)
	for at, looked := l.claim.sequence-1, 0; at >= first && looked < maxTail; at, looked = at-1, looked+1 {
		m, err := l.stream.GetMsg(ctx, at)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read message %d of the stream: %w", at, err)
		}
		sequence, ok := number(m.Header, headerSequence)
		if !ok || m.Subject == l.claim.fence || m.Header.Get(headerProcess) != escape(d.Process) {
			continue // another publisher's
		}
		if epoch, _ := number(m.Header, headerEpoch); superseded(d, epoch, at) != nil {
			return superseded(d, epoch, at)
		}
		if sequence < d.Sequence && m.Header.Get(headerReplay) == "" {
			return nil // all before it have landed
		}
		id, _, _ := strings.Cut(m.Header.Get(jetstream.MsgIDHeader), afterID)
		l.landed[id] = true
	}
	return nil
}

// idOf is the id under which a record goes out.
func (l *link) idOf(d processor.Delivery) string {
	id := messageID(d)
	return cmp.Or(l.others[id], id)
}

// inTheWay has a record go out under another id, since a message of the stream has its
// own without being it.
func (l *link) inTheWay(d processor.Delivery, at uint64) {
	id := messageID(d)
	l.others[id] = fmt.Sprint(id, afterID, at)
}

// has reports whether the tail has a record.
func (l *link) has(d processor.Delivery) bool { return len(l.landed) > 0 && l.landed[messageID(d)] }
