package main_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
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

// TestREADME_TheTenMinutesGoAsDescribed runs the README's SQL, its receiver and its configuration, and then what it says to do.
func TestREADME_TheTenMinutesGoAsDescribed(t *testing.T) {
	t.Parallel()
	pgtest.Require(t, "python3")
	const readme, port = "../../README.md", "8000"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, free, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())

	address, pool := database(t, 0)
	psql := func(sql string) { execute(t, pool, "SET search_path = public; "+sql) }
	psql(block(t, readme, "sql"))
	received := filepath.Join(t.TempDir(), "received")
	output, err := os.Create(received)
	require.NoError(t, err)
	defer output.Close()
	script := strings.Replace(block(t, readme, "python"), port, free, 1)
	receiver := exec.CommandContext(t.Context(), "python3", "-c", script)
	receiver.Stdout, receiver.Stderr = output, os.Stderr
	require.NoError(t, receiver.Start())
	t.Cleanup(func() { _ = receiver.Process.Kill(); _ = receiver.Wait() })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+free)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)

	config := file(t, strings.Replace(block(t, readme, "yaml"), port, free, 1))
	requireCode := func(want int, args ...string) (stdout string) {
		t.Helper()
		code, stdout, stderr := do(t, address, args...)
		require.Equal(t, want, code, "%v: %s%s", args, stdout, stderr)
		return stdout
	}
	const halted = 3
	requireCode(0, "doctor", "-c", config)
	psql("INSERT INTO orders (customer, amount) VALUES ('Ada', 30), ('Grace', 12)")
	requireCode(0, "run", "--drain", "-c", config)
	psql("INSERT INTO orders (customer, amount) VALUES ('Barbara', -5), ('Tony', 8)")
	requireCode(halted, "run", "--drain", "-c", config)
	require.Contains(t, requireCode(halted, "status", "-c", config), "the amount is negative")
	psql("UPDATE orders SET amount = 5 WHERE customer = 'Barbara'")
	requireCode(0, "retry", "orders", "--reason", "the amount is corrected")
	requireCode(0, "run", "--drain", "-c", config)
	require.Contains(t, requireCode(0, "history", "orders"), "the amount is corrected")
	got, err := os.ReadFile(received)
	require.NoError(t, err)
	require.Equal(t, "1 Ada 30\n2 Grace 12\n3 Barbara 5\n4 Tony 8\n", string(got))
}
