package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// block returns the one block of code in that language of a document.
func block(t *testing.T, path, language string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 1)
	return string(blocks[0][1])
}

// TestConfiguration_TheFirstExampleWorks: as it is in docs/configuration.md, but for the receiver.
func TestConfiguration_TheFirstExampleWorks(t *testing.T) {
	t.Parallel()
	example := block(t, "../../docs/configuration.md", "yaml")
	var requests atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Signature") != "" {
			requests.Add(1)
		}
	}))
	defer receiver.Close()
	const url = "https://sms.example/send"
	require.Contains(t, example, url)
	config := strings.NewReplacer(url, receiver.URL, "${SMS_SECRET}", "a-secret-of-thirty-two-bytes-xxx").Replace(example)

	address, _ := database(t, 3)
	for _, args := range [][]string{{"doctor"}, {"run", "--drain"}, {"status"}} {
		code, stdout, stderr := do(t, address, append(args, "-c", file(t, config))...)
		require.Zero(t, code, "%v: %s%s", args, stdout, stderr)
	}
	require.EqualValues(t, 3, requests.Load())
}
