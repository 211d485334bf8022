package webhook

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

const otherSecret = "0123456789abcdef0123456789abcdef"

func TestDeliver_RotationKeepsReceiversOfEitherSecret(t *testing.T) {
	t.Parallel()
	const old, new = secret, otherSecret
	for _, c := range []struct {
		signs    string
		verifies []string
		fails    []string
	}{
		{old, []string{old}, []string{new}},
		{old + " " + new, []string{old, new}, nil},
		{new + "\n" + old, []string{old, new}, nil},
		{new, []string{new}, []string{old}},
	} {
		for _, format := range []Format{Plain, CloudEvents, CloudEventsStructured} {
			url, requests := record(t)
			require.NoError(t, newSink(t, Config{URL: url, Secret: c.signs, Format: format}).Deliver(t.Context(), delivery()))
			verify := func(secret string) error {
				reference, err := standardwebhooks.NewWebhook(secret)
				if !strings.HasPrefix(secret, signature.Prefix) {
					reference, err = standardwebhooks.NewWebhookRaw([]byte(secret))
				}
				require.NoError(t, err)
				return reference.Verify(requests()[0].body, requests()[0].header)
			}
			for _, secret := range c.verifies {
				require.NoError(t, verify(secret), format)
			}
			for _, secret := range c.fails {
				require.ErrorIs(t, verify(secret), standardwebhooks.ErrNoMatchingSignature, format)
			}
		}
	}
}

func TestDeliver_SignatureIsVerifiedByTheReferenceLibrary(t *testing.T) {
	t.Parallel()
	url, requests := record(t)
	s := newSink(t, Config{URL: url, Secret: secret + " " + otherSecret})
	d := delivery()
	d.ID = "é.\r\n%\"1767323045."
	require.NoError(t, s.Deliver(t.Context(), d))
	r := requests()[0]

	byPrefixed, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	byRaw, err := standardwebhooks.NewWebhookRaw([]byte(otherSecret))
	require.NoError(t, err)
	byStranger, err := standardwebhooks.NewWebhookRaw([]byte(strings.ToUpper(otherSecret)))
	require.NoError(t, err)
	require.NoError(t, byPrefixed.Verify(r.body, r.header))
	require.NoError(t, byRaw.Verify(r.body, r.header))
	require.ErrorIs(t, byStranger.Verify(r.body, r.header), standardwebhooks.ErrNoMatchingSignature)
	require.Equal(t, r.header.Get("Idempotency-Key"), r.header.Get("webhook-id"))
	require.Equal(t, 1, strings.Count(r.header.Get("webhook-id"), "."), "the table's only: the row's id moves no border")
}

func TestDeliver_EveryAttemptHasAFreshTimestampAndTheSameID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t, Config{URL: "http://receiver.example", Secret: secret})
		first := s.header(delivery(), []byte(delivery().Payload), time.Now())
		time.Sleep(time.Minute)
		second := s.header(delivery(), []byte(delivery().Payload), time.Now())
		get := func(h http.Header, name string) string { return h.Get(name) }
		require.Equal(t, get(first, "Webhook-Id"), get(second, "Webhook-Id"))
		require.NotEqual(t, get(first, "Webhook-Timestamp"), get(second, "Webhook-Timestamp"))
		require.NotEqual(t, get(first, "Webhook-Signature"), get(second, "Webhook-Signature"))
	})
}
