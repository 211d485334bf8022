package retention

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call to a file system that is frozen returns when it is thawed, and not before. A pass has a deadline, and a worker
// that was told to stop must not wait either.
func TestDirectory_ThatHangsIsLeftBehindOnceUntilItAnswers(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Millisecond)
		},
		"SIGTERM": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Directory(t.TempDir())
			var calls atomic.Int32
			thaw, begun := make(chan struct{}), make(chan struct{}, 9)
			frozen := func() (struct{}, error) {
				calls.Add(1)
				begun <- struct{}{}
				<-thaw
				return struct{}{}, nil
			}
			ctx, cancel := end(t.Context())
			defer cancel()
			_, first := call(ctx, d, frozen)
			require.Error(t, first)
			require.Equal(t, name == "SIGTERM", errors.Is(first, context.Canceled))

			bounded, stop := context.WithTimeout(t.Context(), time.Second) // a second call would not end either
			defer stop()
			_, second := call(bounded, d, frozen)
			require.EqualError(t, second, "the file system of "+string(d)+" hangs: nothing is written there until it answers")
			require.EqualError(t, d.Put(t.Context(), "a", nil), second.Error())
			require.EqualError(t, d.Remove(t.Context(), "a"), second.Error())
			_, err := d.List(t.Context(), "")
			require.EqualError(t, err, second.Error())
			if name != "SIGTERM" {
				require.EqualError(t, overdue(ctx, first), second.Error(), "the log has it once")
			}
			<-begun
			require.EqualValues(t, 1, calls.Load())
			require.NoError(t, Directory(t.TempDir()).Put(t.Context(), "a", nil), "another directory does not hang")

			close(thaw)
			require.Eventually(t, func() bool { return d.Put(t.Context(), "a", nil) == nil }, 10*time.Second, time.Millisecond)
		})
	}
}

// The log has each problem once, and goes by its text. The name of the temporary file is random.
func TestDirectory_AnErrorHasTheSameTextAgain(t *testing.T) {
	t.Parallel()
	missing := Directory(filepath.Join(t.TempDir(), "missing"))
	require.EqualError(t, missing.Put(t.Context(), "a", nil), "open "+string(missing)+": no such file or directory")

	d := Directory(t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(string(d), "a", "b"), 0o700))
	err := d.Put(t.Context(), "a", nil)
	require.ErrorContains(t, err, "rename "+string(d)+": ")
	require.EqualError(t, d.Put(t.Context(), "a", nil), err.Error())
}
