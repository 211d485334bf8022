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

// The configuration in the README works as it stands there, but for the receiver,
// which nobody runs; and so do the commands around it.
func TestREADME_ConfigurationWorks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 1)

	var requests atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Signature") != "" {
			requests.Add(1)
		}
	}))
	defer receiver.Close()
	const url = "https://sms.example/send"
	require.Contains(t, string(blocks[0][1]), url)
	config := strings.NewReplacer(url, receiver.URL, "${SMS_SECRET}", "a-secret-of-thirty-two-bytes-xxx").Replace(string(blocks[0][1]))

	address, _ := database(t, 3)
	for _, args := range [][]string{{"doctor"}, {"run", "--drain"}, {"status"}} {
		code, stdout, stderr := do(t, address, append(args, "-c", file(t, config))...)
		require.Zero(t, code, "%v: %s%s", args, stdout, stderr)
	}
	require.EqualValues(t, 3, requests.Load())
}
