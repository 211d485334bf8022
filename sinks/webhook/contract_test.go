package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// numbered is a delivery with small numbers.
func numbered() processor.Delivery {
	d := delivery()
	d.Sequence, d.Epoch, d.Origin = 7, 5, "ours"
	return d
}

// A receiver that follows docs/wire.md answers with what it has noted.
func TestDeliver_WhatTheReceiverHasNotedHaltsAndIsNotTheRecordsFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status              int
		header, value, text string
	}{
		{409, "Ordered-Epoch", "6", "the receiver has seen epoch 6, and this one is 5: another worker has taken over, or the database was set back, and then `ordered-dispatcher restored booking_sms` goes on past it"},
		{428, "Ordered-Sequence", "5", "the receiver has number 5, this one is 7, and it wants those between: `seek` to before the last record that it has, let it apply what `ordered-dispatcher show booking_sms --after 5 -c FILE` prints, or have it accept the gap through 6 (AcceptGap of package inbox)"},
		{428, "Ordered-Sequence", "0", "the receiver has number 0, this one is 7"},
		{409, "Ordered-Version", "2", "the receiver knows version 2 of the contract, and this is version 1: upgrade the one that is older"},
		{409, "Ordered-Origin", "theirs", `the receiver has records of another cursor under the name 'booking_sms': rename this process if both send, or else have the receiver accept the origin 'ours' (AcceptOrigin of package inbox)`},
	} {
		server := answer(t, c.status, map[string]string{c.header: c.value}, "in the receiver's own words")
		err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), numbered())
		require.ErrorContains(t, err, c.text)
		require.NotContains(t, err.Error(), "own words", "they say the same again")
		require.True(t, processor.IsRefused(err), c)
		require.NotContains(t, err.Error(), "theirs")
	}
}

// Other receivers answer 409 and 428 about the record. Some echo the headers of a request.
func TestDeliver_AnAnswerThatContradictsNothingIsAboutTheRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status        int
		header, value string
	}{
		{409, "Ordered-Epoch", "5"},
		{409, "Ordered-Epoch", "4"},
		{428, "Ordered-Sequence", "6"},
		{428, "Ordered-Sequence", "7"},
		{428, "Ordered-Sequence", "8"},
		{409, "Ordered-Version", "1"},
		{409, "Ordered-Version", "a b"},
		{422, "Ordered-Version", "2"},
		{409, "Ordered-Origin", "ours"},
		{409, "Ordered-Sequence", "12"},
		{428, "Ordered-Epoch", "12"},
		{422, "Ordered-Epoch", "12"},
		{422, "Ordered-Origin", "theirs"},
		{409, "Ordered-Epoch", ""},
		{409, "Ordered-Epoch", "-1"},
		{409, "Ordered-Epoch", "+9"},
		{409, "Ordered-Epoch", "a b"},
		{409, "Ordered-Epoch", "1e9"},
		{409, "Ordered-Epoch", strings.Repeat("9", 20)},
		{428, "Ordered-Sequence", "-1"},
	} {
		server := answer(t, c.status, map[string]string{c.header: c.value}, "")
		err := newSink(t, Config{URL: server.URL}).Deliver(t.Context(), numbered())
		require.True(t, processor.IsPermanent(err) && !processor.IsRefused(err), "%v: %v", c, err)
	}
}

func TestDeliver_ANumberOfTheReceiverIsPrintedAsANumber(t *testing.T) {
	t.Parallel()
	const token = "123456789012345678"
	for name, c := range map[string]struct {
		value func(*http.Request) string
		want  string
	}{
		"zeros":     {func(*http.Request) string { return strings.Repeat("0", 12_000) + "9" }, "the receiver has seen epoch 9, and"},
		"the token": {func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }, "the receiver has seen epoch [secret], and"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Ordered-Epoch", c.value(r))
			w.WriteHeader(http.StatusConflict)
		}))
		t.Cleanup(server.Close)
		err := newSink(t, Config{URL: server.URL, Bearer: token}).Deliver(t.Context(), numbered())
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, fmt.Sprintf("%v %+v", err, err), token)
		require.Less(t, len(err.Error()), 400)
	}
}
