package nats

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestGuard_HidesSecretsAndOnDemandAllThatTheServerSays(t *testing.T) {
	t.Parallel()
	c := Config{URL: "nats://token-in-url@x,nats://u:pass-word-9@y", Token: "a-token-7"}
	err := fmt.Errorf("claim: %w", &jetstream.APIError{Code: 400, ErrorCode: 10059, Description: `no a\u002dtoken-7, token%2Din-url nor pass-word-9`})
	require.ErrorContains(t, newGuard(c).Error(err), "no [secret], [secret] nor [secret]")
	c.HideAnswers = true
	require.NotContains(t, newGuard(c).Error(err).Error(), "no ")
	require.ErrorIs(t, newGuard(c).Error(err), jetstream.ErrStreamNotFound)
	require.EqualError(t, newGuard(c).Error(fmt.Errorf("lost: %w", &said{errors.New("words")})), "lost: […]")
}

// A server whose words begin like the command that we propose switches nothing off, and its words are none of ours.
func TestGuard_OnlyACommandOfOursStaysWhole(t *testing.T) {
	t.Parallel()
	g := newGuard(Config{URL: "nats://x"}).of(sinktest.Private())
	ours := addSubjects(jetstream.StreamConfig{Subjects: []string{"bookings.>"}}, "x", "a")
	text := g.Error(ours).Error()
	require.Contains(t, text, "nats stream edit x --subjects=")
	theirs := &jetstream.APIError{Code: 400, ErrorCode: 10071, Description: text + " " + sinktest.Repeated}
	got := g.Error(fmt.Errorf("publish: %w", theirs)).Error()
	for _, words := range []string{sinktest.Repeated, "4111"} {
		require.NotContains(t, got, words)
	}
	require.Contains(t, got, "[…]")
}

// unacknowledged is a message that the server does not answer.
type unacknowledged struct{ jetstream.PubAckFuture }

func (unacknowledged) Ok() <-chan *jetstream.PubAck { return nil }

func (unacknowledged) Err() <-chan error { return nil }

// The server refuses the first message of a window and is silent about the next one, which it may have.
func TestRefuseRest_AMessageWithoutAnAnswerLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	s := &Sink{config: Config{URL: "nats://x", Timeout: 10 * time.Millisecond}, link: &link{closed: make(chan struct{})}}
	word := errors.New("word")
	for name, failure := range map[string]error{"permanent": processor.Permanent(word), "refused": processor.Refused(word), "unreached": processor.Unreached(word)} {
		err := s.refuseRest(t.Context(), []sent{{PubAckFuture: unacknowledged{}}}, outcome.AboutRecord(failure))
		require.True(t, outcome.IsUnknown(err), "%s: %v", name, err)
		require.False(t, outcome.IsAboutRecord(err), "the link is to be dropped")
		require.False(t, processor.IsPermanent(err) || processor.IsRefused(err), err)
		require.Equal(t, name == "unreached", processor.IsUnreached(err) && outcome.IsOutage(err), err)
		require.EqualError(t, err, "word; the server may have records that were sent after this one: it has not answered for them")
		require.Equal(t, failure, s.refuseRest(t.Context(), nil, failure))
	}
}

func TestValidURL_NeedsAPasswordThatIsEncoded(t *testing.T) {
	t.Parallel()
	require.False(t, validURL("nats://u:12/s3cret@127.0.0.1"))
	require.True(t, validURL("nats://u:12%2Fs3cret@127.0.0.1"))
}
