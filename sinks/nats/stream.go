package nats

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// The first server that compares the last sequence of another subject.
const needMajor, needMinor = 2, 11

// find looks at the stream, or makes it. It refuses a stream that cannot hold the fence or does not take the subject.
func (l *link) find(ctx context.Context, c Config, fence, subject string) (err error) {
	if version := l.connection.ConnectedServerVersion(); !atLeast(version, needMajor, needMinor) {
		return &of{fmt.Errorf("the server is of version %s: the fence needs %d.%d or later", version, needMajor, needMinor),
			fmt.Sprintf("the server is too old: the fence needs %d.%d or later", needMajor, needMinor)}
	}
	l.stream, err = l.js.Stream(ctx, c.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && c.Declare != nil && !c.exists {
		l.stream, err = l.js.CreateStream(ctx, c.Declare.stream(c.Stream, fence, time.Now()))
	}
	if err != nil {
		return fmt.Errorf("look at the stream: %w", undecoded(err))
	}
	askLeader(l.stream)
	return unfit(l.stream.CachedInfo().Config, c, fence, subject)
}

// askLeader makes reads of messages go to the stream's leader. Under allow_direct (mirror_direct) any replica or
// mirror answers with the messages that it has applied. It may lack a message that the leader has acknowledged, which
// would then be sent a second time.
func askLeader(s jetstream.Stream) { s.CachedInfo().Config.AllowDirect = false }

// stream returns the configuration of a new stream. Its sequences begin with the time in microseconds, after those of
// a deleted stream. Without that, a worker of the deleted stream, which still expects its claim there, would be let
// in where another claim has the same sequence.
func (d Declare) stream(name, fence string, now time.Time) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "declared by ordered-dispatcher",
		Subjects:    d.with(fence),
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		Replicas:    d.Replicas,
		Duplicates:  d.DuplicateWindow,
		FirstSeq:    uint64(now.UnixMicro()),
		AllowRollup: true, // a claim replaces the one before it
	}
}

// with returns the declared subjects, and the fence's if they do not take it.
func (d Declare) with(fence string) []string {
	if takes(d.Subjects, fence) {
		return d.Subjects
	}
	return append(d.Subjects[:len(d.Subjects):len(d.Subjects)], fence)
}

// unfit returns why records cannot go into the stream, and the fix.
func unfit(c jetstream.StreamConfig, ours Config, fence, subject string) error {
	switch {
	case c.Sealed:
		return fmt.Errorf("%w: it is sealed and takes nothing any more: name another one", errUnfit)
	case c.Mirror != nil:
		return &of{fmt.Errorf("%w: it is a mirror, and takes nothing but what stream %q has: name that one", errUnfit, c.Mirror.Name),
			fmt.Sprintf("%v: it is a mirror, and takes nothing but what another stream has: name that one", errUnfit)}
	case c.NoAck:
		return fmt.Errorf("%w: it has no_ack, so the server acknowledges no message: set no_ack to false", errUnfit)
	case c.Retention == jetstream.InterestPolicy:
		return fmt.Errorf("%w: it has retention interest, under which a claim is deleted at once and fences nothing: use limits", errUnfit)
	case !takes(c.Subjects, fence):
		return fmt.Errorf("%w: it does not take the fence's subject %q: %w, or set fence to one that it takes and no one else writes to", errUnfit, fence, addSubjects(c, ours.Stream, fence))
	case moves(c.SubjectTransform, fence):
		const moved = "moves the fence's subject %q, which then fences nothing: let its source leave that out, such as the subjects of the records alone"
		return &of{fmt.Errorf("%w: its subject_transform from %q to %q "+moved, errUnfit, source(c.SubjectTransform), c.SubjectTransform.Destination, fence),
			fmt.Sprintf("%v: its subject_transform "+moved, errUnfit, fence)}
	case subjectFault(subject) != nil:
		return nil // the record's own fault, found where it is published; or there is no record yet
	default:
		return notTaken(c, ours, subject)
	}
}

// moves reports whether a stream keeps messages of a subject under another one.
func moves(t *jetstream.SubjectTransformConfig, subject string) bool {
	return t != nil && t.Destination != source(t) && takes([]string{source(t)}, subject)
}

// source is the filter of a transform: none is all subjects.
func source(t *jetstream.SubjectTransformConfig) string { return cmp.Or(t.Source, ">") }

// notTaken returns an error if a subject does not belong to the stream, and nil if it does.
func notTaken(c jetstream.StreamConfig, ours Config, subject string) error {
	if takes(c.Subjects, subject) {
		return nil
	}
	return fmt.Errorf("the stream does not take subject %q: nothing is published there; %w", ours.shown(subject), takeSubject(c, ours, subject))
}

// takeSubject returns the command that makes a stream take the subject of a record, and the subjects of later records
// where they are known.
func takeSubject(c jetstream.StreamConfig, ours Config, subject string) error {
	const next = "%w, or correct subject"
	for _, wide := range ours.covering(subject) {
		if kept, added := merge(c.Subjects, wide); !overlap(kept, added) {
			return fmt.Errorf(next, addSubjects(c, ours.Stream, wide...))
		}
	}
	if ours.shown(subject) != subject {
		return errors.New("add a pattern to the stream's subjects that takes those of all records, or correct subject")
	}
	return fmt.Errorf(next+"; other records may have other subjects: add a pattern that takes them all", addSubjects(c, ours.Stream, subject))
}

// addSubjects returns the command that makes a stream take more subjects. A shell takes each text of the server in it
// for one word.
func addSubjects(c jetstream.StreamConfig, name string, missing ...string) error {
	edit := "nats stream edit " + visible.Shell(name) + " --subjects="
	kept, added := merge(c.Subjects, missing)
	all := strings.Join(slices.Concat(kept, added), ",")
	hidden := edit + "… (those that it has, and " + visible.Quoted(strings.Join(added, ",")) + ")"
	if len(kept) < len(c.Subjects) {
		hidden = edit + "… (those that it has, without those that are among the following, and " + visible.Quoted(strings.Join(added, ",")) + ")"
	}
	return &command{of{errors.New(edit + visible.Quoted(all)), hidden}}
}

// takesSubject returns an error unless a subject belongs to the stream. A message published to another subject may be
// an order to somebody, and is not fenced. Before it returns the error it looks at the stream again, since that may
// have been given the subject. Once the stream takes a subject, it is not compared again over the same link: see
// elsewhere.
func (l *link) takesSubject(ctx context.Context, c Config, subject string) error {
	if subject == l.subject {
		return nil
	}
	if takes(l.stream.CachedInfo().Config.Subjects, subject) {
		l.subject = subject
		return nil
	}
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	info, err := l.info(ctx)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", ended(ctx, err))
	}
	return notTaken(info.Config, c, subject)
}

// elsewhere handles an answer that is missing, or does not come from a stream. If the stream has lost the subject
// since the last look, the error reports that: the receiver that listens there instead has the message.
func (l *link) elsewhere(ctx context.Context, c Config, subject string, missing error) error {
	if l.dead() {
		return missing
	}
	ctx, cancel := l.within(ctx, min(c.Timeout, time.Second))
	defer cancel()
	info, err := l.info(ctx)
	if err != nil || takes(info.Config.Subjects, subject) {
		return missing
	}
	return fmt.Errorf("%w; the stream no longer takes subject %q, and what listens there instead may have received the record: %w",
		missing, c.shown(subject), takeSubject(info.Config, c, subject))
}

// info returns the present state of the stream.
func (l *link) info(ctx context.Context, options ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := l.stream.Info(ctx, options...)
	if err != nil {
		return nil, undecoded(err)
	}
	askLeader(l.stream)
	return info, nil
}

// message returns a message of the stream.
func (l *link) message(ctx context.Context, at uint64) (*jetstream.RawStreamMsg, error) {
	m, err := l.stream.GetMsg(ctx, at)
	return m, undecoded(err)
}

// holds reports whether a message of the stream has that id and payload. A message that is gone does not, and it may
// be that no one can read it any more. From a work queue, however, each message goes when it is consumed.
func (l *link) holds(ctx context.Context, c Config, at uint64, id string, payload []byte) (bool, error) {
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	m, err := l.message(ctx, at)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return l.stream.CachedInfo().Config.Retention == jetstream.WorkQueuePolicy, nil
	}
	if err != nil {
		return false, ended(ctx, err)
	}
	return m.Header.Get(jetstream.MsgIDHeader) == id && bytes.Equal(m.Data, payload), nil
}

// lacks reports whether a stream is without our last acknowledged message. A message that is gone is usually not a
// loss: a newer claim may have replaced it, a consumer may have read it from a work queue, or a limit or a purge may
// have removed it. It is a loss if the stream was made at another time and has never reached that number.
func (l *link) lacks(ctx context.Context, c Config, last stood) (bool, error) {
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	m, err := l.message(ctx, last.sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		info := l.stream.CachedInfo()
		// a server before 2.15 may show another time after an edit and a restart
		return last.differs(info.Created) && (last.sequence < info.State.FirstSeq || last.sequence > info.State.LastSeq), nil
	}
	if err != nil {
		return false, fmt.Errorf("read message %d again: %w", last.sequence, ended(ctx, err))
	}
	return identity(m.Header) != last.identity, nil
}

// atLeast reports whether a server has that version or a later one. A server whose version is not a number passes.
func atLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	second, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(first)
	y, err2 := strconv.Atoi(second)
	return err != nil || err2 != nil || x > major || x == major && y >= minor
}
