package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The daemon collects no spans, and cuts no trace.
func TestRun_ARecordsTraceGoesOnAtItsReceiver(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD headers jsonb")
	exec(t, pool, `INSERT INTO public.bookings (headers) VALUES ('{"traceparent": "`+parent+`", "tracestate": "vendor=x"}'), (NULL)`)
	var mu sync.Mutex
	var parents, states []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		parents, states = append(parents, r.Header.Get("Traceparent")), append(states, r.Header.Get("Tracestate"))
	}))
	defer receiver.Close()
	require.NoError(t, drain(t, configure(t, pgtest.URL(t),
		"  a: {source: {table: public.bookings, columns: {headers: headers}}, sink: {webhook: {url: '"+receiver.URL+"'}}}\n")))
	require.Equal(t, []string{parent, ""}, parents)
	require.Equal(t, []string{"vendor=x", ""}, states)
}
