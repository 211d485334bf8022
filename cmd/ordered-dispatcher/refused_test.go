package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// letters is how many records are put aside.
func letters(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return pgtest.Value[int](t, pool, "SELECT count(*) FROM public.dead_letter")
}

// A wrong secret or URL once put 1,000 of 1,000 records aside within seconds, under
// the settings that docs/operations.md recommends.
func TestRefused_AReceiverThatRefusesUsPutsNoRecordAside(t *testing.T) {
	t.Parallel()
	const records = 1000
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, records)
			var fixed atomic.Bool
			var asked, taken atomic.Int64
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1); !fixed.Load() {
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(status)
					return
				}
				if r.Header.Get("Ordered-Sequence") == fmt.Sprint(taken.Load()+1) {
					taken.Add(1)
				}
			}))
			t.Cleanup(receiver.Close)
			config := file(t, `processes: {a: {source: {table: public.bookings}, start: beginning, sink: {webhook: {url: "`+receiver.URL+`"}},
				on_poison: dead_letter, retry: {attempts: 5}, breaker: {failures: 20, cooldown: 100ms}}}`)
			code, _, stderr := do(t, address, "run", "--drain", "-c", config)
			require.Equal(t, 3, code, stderr)
			require.Contains(t, stderr, "the receiver or a setting is at fault")
			require.EqualValues(t, 1, asked.Load(), "it is not knocked at again")
			require.Zero(t, letters(t, pool))
			_, stdout, _ := do(t, address, "status", "a", "--json")
			require.Contains(t, stdout, `"refused"`)

			fixed.Store(true)
			code, _, stderr = do(t, address, "retry", "a")
			require.Zero(t, code, stderr)
			code, _, stderr = do(t, address, "run", "--drain", "-c", config)
			require.Zero(t, code, stderr)
			require.EqualValues(t, records, taken.Load())
			require.Zero(t, letters(t, pool))
		})
	}
}
