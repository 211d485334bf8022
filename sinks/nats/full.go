package nats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// The first server that lets a claim replace the one before it (a rollup) where the subject is full.
const replaceMajor, replaceMinor = 2, 14

// fixFence is the fix where claims fill the fence's subject. An older server needs both of the first two options.
const fixFence = "allow rollups (allow_rollup_hdrs: true), so that a claim replaces the one before it, or raise max_msgs_per_subject, " +
	"or drop discard_new_per_subject; a server before 2.14 needs both rollups and a larger max_msgs_per_subject"

// count returns how many messages of a subject the stream has, and the present configuration of the stream.
func (l *link) count(ctx context.Context, c Config, subject string) (uint64, jetstream.StreamConfig, error) {
	ctx, cancel := l.within(ctx, c.Timeout)
	defer cancel()
	info, err := l.info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, jetstream.StreamConfig{}, fmt.Errorf("count the messages of a subject: %w", ended(ctx, err))
	}
	return info.State.Subjects[subject], info.Config, nil
}

// isFull reports whether a stream with has messages of a subject refuses more of them. It may have room for those of
// other subjects.
func isFull(c jetstream.StreamConfig, has uint64) bool {
	return c.DiscardNewPerSubject && c.MaxMsgsPerSubject > 0 && has >= uint64(c.MaxMsgsPerSubject)
}

// noRoom returns why the server stored no claim: the fence's subject is full, or else the server's own error.
func (l *link) noRoom(ctx context.Context, c Config, fence string, said error) error {
	if has, config, err := l.count(ctx, c, fence); err == nil && isFull(config, has) {
		return errFull(config, fence)
	}
	return said
}

func errFull(c jetstream.StreamConfig, fence string) error {
	return fmt.Errorf("%w: the fence's subject %q is full, since the stream keeps at most %d of the messages of one subject and refuses more (discard_new_per_subject): no other claim can be written; %s",
		errUnfit, fence, c.MaxMsgsPerSubject, fixFence)
}

// notStored returns the server's error about a record that it did not store, with the fix. A full subject gets room
// as its messages age out or are consumed, so the record waits as it does for a full stream.
func (l *link) notStored(ctx context.Context, c Config, subject string, said error) error {
	has, config, err := l.count(ctx, c, subject)
	if err != nil || !isFull(config, has) {
		return coded(said)
	}
	return fmt.Errorf("error %d of the server: %w; subject %q is full, since the stream keeps at most %d of the messages of one subject and refuses more (discard_new_per_subject): "+
		"raise max_msgs_per_subject, drop discard_new_per_subject, or remove messages of the subject (consume them from a work queue, or purge what was read)",
		codeStoreFailed, said, c.shown(subject), config.MaxMsgsPerSubject)
}

// filling finds out for Check whether claims fill a fence's subject. It returns an error if the subject is full
// already.
func (l *link) filling(ctx context.Context, c Config, fence string) ([]Finding, error) {
	if !l.stream.CachedInfo().Config.DiscardNewPerSubject {
		return nil, nil
	}
	has, config, err := l.count(ctx, c, fence)
	if err != nil || !fillsUp(config, l.connection.ConnectedServerVersion(), has) {
		return nil, err
	}
	if isFull(config, has) {
		return nil, errFull(config, fence)
	}
	return []Finding{{true, fmt.Sprintf("stream %q keeps at most %d of the messages of one subject and refuses more (discard_new_per_subject): each connection adds a claim to the fence's subject %q, which has %d, "+
		"and the process halts when it is full", c.Stream, config.MaxMsgsPerSubject, fence, has), fixFence}}, nil
}

// fillsUp reports whether claims fill a subject that has a number of messages.
func fillsUp(c jetstream.StreamConfig, version string, has uint64) bool {
	switch {
	case !c.DiscardNewPerSubject:
		return false
	case !c.AllowRollup:
		return true
	case atLeast(version, replaceMajor, replaceMinor):
		return false
	default:
		return c.MaxMsgsPerSubject == 1 || isFull(c, has)
	}
}
