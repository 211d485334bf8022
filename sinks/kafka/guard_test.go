package kafka

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// refused is an error as the client makes it of a code and the broker's words.
func refused(words string) error {
	return fmt.Errorf("%w: %s", kerr.SaslAuthenticationFailed, words)
}

func TestGuard_HidesThePasswordAndOnDemandAllThatTheBrokerSays(t *testing.T) {
	t.Parallel()
	c := Config{SASL: SASL{Mechanism: "PLAIN", User: "u", Password: "pass-word-9"}}
	err := fmt.Errorf("send: %w; correct it", refused("no AHUAcGFzcy13b3JkLTk=\nhere")) // PLAIN's own form
	require.EqualError(t, newGuard(c).Error(err), "send: "+kerr.SaslAuthenticationFailed.Error()+": no [secret] here; correct it")
	c.HideAnswers = true
	require.EqualError(t, newGuard(c).Error(err), "send: "+kerr.SaslAuthenticationFailed.Error()+": […]; correct it")
	require.ErrorIs(t, newGuard(c).Error(err), kerr.SaslAuthenticationFailed)
}

// A word of the broker's may be one of ours, and the client adds words of its own.
func TestGuard_HidesTheBrokersWordsWhereItSaysThem(t *testing.T) {
	t.Parallel()
	g := newGuard(Config{HideAnswers: true})
	for _, words := range []string{"e", "record", "send", "SASL", ""} {
		err := fmt.Errorf("send record %q: %w; correct user and password of sasl", "e", refused(words))
		require.EqualError(t, g.Error(err), `send record "e": `+kerr.SaslAuthenticationFailed.Error()+`: […]; correct user and password of sasl`)
	}
	for _, err := range []error{
		fmt.Errorf("%w (uncompressed_bytes=7, compressed_bytes=5)", kerr.MessageTooLarge),
		fmt.Errorf("it has 9 bytes, and max_bytes is 8: %w", kerr.MessageTooLarge),
		fmt.Errorf("%w: the topic was deleted", heard(kerr.UnknownTopicID)),
	} {
		require.Equal(t, err, g.Error(err))
	}
}
