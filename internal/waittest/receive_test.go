package waittest

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failing notes the message of a test that fails.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestReceive_ReturnsWhatComesAndTheEnd(t *testing.T) {
	t.Parallel()
	values := make(chan int, 1)
	values <- 7
	require.Equal(t, 7, Receive(t, values, "seven comes"))
	close(values)
	require.Zero(t, Receive(t, values, "it ends"))
}

func TestReceive_NamesWhatDoesNotCome(t *testing.T) {
	t.Parallel()
	f, ended := &failing{}, make(chan struct{})
	go func() {
		defer close(ended)
		receive(f, make(chan int), "the claim is held", time.Millisecond)
		f.message = "it went on"
	}()
	Receive(t, ended, "the other one fails")
	require.Equal(t, "waited in vain until the claim is held, for 1ms", f.message)
}
