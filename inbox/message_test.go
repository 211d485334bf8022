package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
)

func headers(more map[string]string) func(string) string {
	all := map[string]string{"ordered-version": "1", "ordered-process": "p", "ordered-origin": "o", "ordered-sequence": "7", "ordered-epoch": "3", "ordered-dedup-key": "k"}
	for name, value := range more {
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

// A receiver of a broker would else take a reference, or compressed bytes, for the payload.
func TestFromHeaders_ShowsThatThePayloadIsPacked(t *testing.T) {
	t.Parallel()
	m, err := inbox.FromHeaders("", headers(map[string]string{"ordered-claim-check": "true", "ordered-content-encoding": "zstd"}))
	require.NoError(t, err)
	require.True(t, m.ClaimCheck)
	require.Equal(t, "zstd", m.ContentEncoding)
	m, err = inbox.FromHeaders("", headers(nil))
	require.NoError(t, err)
	require.False(t, m.ClaimCheck)
	require.Empty(t, m.ContentEncoding)
}

func TestFromHeaders_AClaimIsNoRecord(t *testing.T) {
	t.Parallel()
	_, err := inbox.FromHeaders("", headers(map[string]string{"ordered-version": "", "ordered-dedup-key": ""}))
	require.ErrorIs(t, err, inbox.ErrClaim)
	require.ErrorIs(t, err, inbox.ErrMessage, "over HTTP, 400")
	_, err = inbox.FromHeaders("", headers(map[string]string{"ordered-dedup-key": ""}))
	require.ErrorIs(t, err, inbox.ErrMessage)
	require.NotErrorIs(t, err, inbox.ErrClaim)
}
