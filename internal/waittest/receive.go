package waittest

import (
	"testing"
	"time"
)

// patience is longer than any call that a test waits for: those end after a minute at the latest.
const patience = 2 * time.Minute

// Receive returns the next value of a channel, or its zero value once the channel is closed. It fails the test if
// neither comes. what completes the sentence "waited in vain until". Call it in the test's own goroutine.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	return receive(t, from, what, patience)
}

func receive[T any](t testing.TB, from <-chan T, what string, patience time.Duration) (value T) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case value = <-from:
	case <-late.C:
		t.Fatalf("waited in vain until %s, for %v", what, patience)
	}
	return value
}
