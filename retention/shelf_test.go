package retention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// A program that uses the library opens the store itself.
func TestPass_AURLNeedsAShelf(t *testing.T) {
	t.Parallel()
	for directory, want := range map[string]string{
		"s3://bucket": "directory s3://bucket is the URL of an object store: open it, and give it as Config.Shelf",
		"archive":     "directory archive is not an absolute path, nor the URL of an object store",
	} {
		_, err := retention.Pass(t.Context(), retention.Config{Rule: retention.Rule{Keep: time.Hour, Mode: retention.ModeFiles, Directory: directory}})
		require.EqualError(t, err, want)
	}
}
