package pgtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed for a test's random choices: RAPID_SEED, which pgregory.net/rapid reads as well, or another
// one each time if that is 0 or not set. The Makefile sets it, so that CI does not find new faults by chance. Seed
// logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	if err != nil || seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("RAPID_SEED=%d", seed)
	return seed
}
