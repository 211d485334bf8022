package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A broker that is slow to connect to, as where one of several addresses is dead, costs no call with the default timeout.
func TestLate_TenSecondsAreEnoughForTheFirstRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout, took time.Duration
		late          bool
	}{
		{30 * time.Second, 20 * time.Second, false},
		{30 * time.Second, 21 * time.Second, true},
		{4 * time.Second, 2 * time.Second, false},
		{4 * time.Second, 2100 * time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			defer cancel()
			time.Sleep(c.took)
			require.Equal(t, c.late, late(ctx, c.took) != nil, "%v of %v", c.took, c.timeout)
		})
	}
	require.NoError(t, late(t.Context(), time.Hour), "no call that ends")
}
