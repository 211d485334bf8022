package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestReceiver(t *testing.T) *receiver {
	t.Helper()
	r, err := newReceiver()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return r
}

// post sends a booking as the webhook sink does, and returns the status and text of the answer.
func post(ctx context.Context, r *receiver, body string, headers map[string]string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func orderedHeaders() map[string]string {
	return map[string]string{"Ordered-Position": "at.int:2026%2F7", "Ordered-Sequence": "7", "Ordered-Epoch": "3"}
}

func TestReceiver_NotesWhatArrives(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t)
	b := someBooking(9)
	body, err := json.Marshal(b)
	require.NoError(t, err)
	for range 2 {
		status, _, err := post(t.Context(), r, string(body), orderedHeaders())
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, status)
	}

	noted := r.noted()
	require.Len(t, noted, 2)
	require.WithinDuration(t, time.Now(), noted[0].At, time.Minute)
	noted[0].At = time.Time{}
	require.Equal(t, delivery{Booking: 9, Digest: b.digest(), Position: "at.int:2026/7", Sequence: 7, Epoch: 3}, noted[0])
	require.Equal(t, progress{delivered: 1, duplicates: 1, epoch: 3}, r.progress())
}

func TestReceiver_KnowsWhatHasArrived(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t)
	before, other := r.arrival(9), r.arrival(8)
	r.note(delivery{Booking: 9})
	for _, arrival := range []<-chan delivery{before, r.arrival(9)} {
		d, err := receive(t.Context(), arrival)
		require.NoError(t, err)
		require.EqualValues(t, 9, d.Booking)
	}
	require.Empty(t, other)
}

func TestReceiver_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t)
	status, text, err := post(t.Context(), r, "{", map[string]string{"Ordered-Sequence": "x"})
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, status)
	for _, fault := range []string{"Ordered-Position", "Ordered-Sequence", "Ordered-Epoch", "read the booking"} {
		require.Contains(t, text, fault)
	}
	require.Empty(t, r.noted())
}

func TestReceiver_HoldsAnAnswerBack(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t)
	next, release := r.hold()
	answered := make(chan error, 1)
	go func() {
		_, _, err := post(t.Context(), r, "{}", orderedHeaders())
		answered <- err
	}()
	held, err := receive(t.Context(), next)
	require.NoError(t, err)
	require.EqualValues(t, 7, held.Sequence)
	require.Empty(t, answered)
	release()
	require.NoError(t, <-answered)
}

// Whoever was killed while its delivery was held must not keep the receiver waiting.
func TestReceiver_LetsGoOfASenderThatIsGone(t *testing.T) {
	t.Parallel()
	r := newTestReceiver(t)
	next, release := r.hold()
	defer release()
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := post(ctx, r, "{}", orderedHeaders())
		ended <- err
	}()
	_, err := receive(t.Context(), next)
	require.NoError(t, err)
	kill()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, r.server.Shutdown(t.Context())) // returns once no request is being served
}
