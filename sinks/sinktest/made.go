package sinktest

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Made makes a sink by its constructor, from a configuration after all changes to it, and closes the sink when the test
// ends. The error of that Close does not matter. A nil change changes nothing.
//
//	s := sinktest.Made(t, webhook.New, webhook.Config{URL: url}, func(c *webhook.Config) { c.Secret = secret })
func Made[C any, S io.Closer](t testing.TB, open func(C) (S, error), c C, changes ...func(*C)) S {
	t.Helper()
	for _, change := range changes {
		if change != nil {
			change(&c)
		}
	}
	sink, err := open(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}
