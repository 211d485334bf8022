package signature

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

const (
	secret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "0123456789abcdef0123456789abcdef"
)

func message(id, timestamp, body string) Message {
	return Message{Header: http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}}, Body: []byte(body)}
}

// Computed with: printf '%s' "$id.$timestamp.$payload" | openssl dgst -sha256
// -mac HMAC -macopt hexkey:$(base64 -d <<<"$key" | od -An -tx1 | tr -d ' \n') -binary | base64
func TestStandard_MatchesAVectorMadeByOpenSSL(t *testing.T) {
	t.Parallel()
	keys, err := Parse(secret)
	require.NoError(t, err)
	got := keys.Standard(message("public.bookings/42/1767323045000006", "1767323045", `{"test": 2432232314}`))
	require.Equal(t, "v1,E2bnjyEeyq+ijftxgWk4IbDQQlnJKsG+q4q3wups8PU=", got)
}

// The vector that the reference libraries of Standard Webhooks are tested with.
func TestStandard_MatchesTheVectorOfTheReferenceLibraries(t *testing.T) {
	t.Parallel()
	const id, at, payload = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	keys, err := Parse(secret)
	require.NoError(t, err)
	require.Equal(t, want, keys.Standard(message(id, strconv.Itoa(at), payload)))
	reference, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	theirs, err := reference.Sign(id, time.Unix(at, 0), []byte(payload))
	require.NoError(t, err)
	require.Equal(t, want, theirs)
}

func TestParse_RefusesWhatIsNoKeyAndQuotesNothing(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]string{
		"blank":           "  ",
		"short":           "canary",
		"long":            strings.Repeat("canary", 11),
		"short base64":    "whsec_Y2FuYXJ5",
		"no base64":       "whsec_canary!canary!canary!canary!canary!",
		"raw with spaces": "a raw secret has no spaces",
		"second is short": otherSecret + " canary",
	} {
		_, err := Parse(secret)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "canary", name)
		require.NotContains(t, err.Error(), "Y2Fu", name)
	}
}

// The form is that of docs/wire.md, line by line.
func TestOrdered_CoversEachHeaderOfTheContractAndTheBody(t *testing.T) {
	t.Parallel()
	m := message("id", "1767323045", "")
	for name, value := range map[string]string{
		"ordered-type": "made", "ordered-epoch": "3", "ordered-type-x": "later:name", "ordered-signature": "v1,x", "traceparent": "00-x",
	} {
		m.Header.Set(name, value)
	}
	require.Equal(t, "ordered-v1\nid\n1767323045\nordered-epoch:3\nordered-type:made\nordered-type-x:later:name\n"+
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", string(m.lines()))
}

func TestDoubled_NamesAHeaderOfTheContractThatCameTwice(t *testing.T) {
	t.Parallel()
	h := http.Header{"Cookie": {"a", "b"}, "Webhook-Signature": {"a", "b"}, "Ordered-Epoch": {"1"}}
	require.Empty(t, Doubled(h))
	for _, name := range []string{"ordered-later", "ordered-signature", "webhook-id", "webhook-timestamp"} {
		other := h.Clone()
		other.Add(name, "x")
		require.Empty(t, Doubled(other))
		other.Add(name, "x")
		require.Equal(t, name, Doubled(other))
	}
}
