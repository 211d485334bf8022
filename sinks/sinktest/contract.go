package sinktest

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// posing are headers of a row by which it poses as the dispatcher.
var posing = map[string]string{
	"content-type": poses, "Content-Type": poses, "ordered-sequence": poses, "Ordered-Epoch": poses, "ORDERED-REPLAY": poses, "ordered-worker": poses,
}

const poses = "text/x-posing"

// contract: a receiver gets what docs/wire.md lists, and no header of the row in its place. The second record was put
// aside, and is replayed.
func contract(t *testing.T, s Subject) {
	if s.Header == nil {
		t.Log("there are no headers")
		return
	}
	letter := Under(4, Deliveries(2, 1))
	letter[0].After, letter[0].Attempt = letter[0].Position, 3
	letter[0].Headers = maps.Clone(posing)
	letter[0].Headers["claim-check"], letter[0].Headers["content-encoding"] = "8f", "zstd" // the process passes on a reference
	eventually(t, s, Deliveries(1, 1))
	eventually(t, s, Deliveries(3, 1))
	eventually(t, s, letter)
	for name, want := range map[string][]string{
		"ordered-version":          {"1", "1", "1"},
		"ordered-process":          {"sms", "sms", "sms"},
		"ordered-origin":           {"here", "here", "here"},
		"ordered-sequence":         {"1", "3", "2"},
		"ordered-epoch":            {"3", "3", "4"},
		"ordered-position":         {string(position(1)), string(position(3)), string(position(2))},
		"ordered-replay":           {"", "", "true"},
		"ordered-claim-check":      {"", "", "true"},
		"ordered-content-encoding": {"", "", "zstd"},
		"ordered-type":             {"made", "made", "made"},
		"ordered-created-at":       {"2023-11-14T22:13:20.000001Z", "2023-11-14T22:13:20.000003Z", "2023-11-14T22:13:20.000002Z"},
		"content-type":             {"application/json", "application/json", "application/json"},
	} {
		require.Equal(t, want, s.Header(t, name), name)
	}
	for name := range posing {
		require.NotContains(t, s.Header(t, name), poses, name)
	}
}
