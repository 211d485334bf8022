package processor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A reference is JSON, and would be decoded as an empty value.
func TestJSON_APayloadThatIsNotWholeIsTheProcesssFault(t *testing.T) {
	t.Parallel()
	sink := processor.JSON(func(context.Context, struct{ Room string }, processor.Delivery) error {
		t.Error("the handler was called")
		return nil
	})
	for header, want := range map[string]string{"claim-check": "its payload is a claim check", "content-encoding": "its payload is compressed"} {
		d := processor.Delivery{Record: processor.Record{Headers: map[string]string{header: "zstd"}, Payload: []byte(`{"object": "8f", "bytes": 9, "sha256": "b9"}`)}}
		err := sink.Deliver(t.Context(), d)
		require.ErrorContains(t, err, want)
		require.True(t, processor.IsRefused(err), "under any rule for poison records")
	}
}
