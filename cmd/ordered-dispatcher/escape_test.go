package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row below max_record_bytes of which JSON makes six times as much takes no more
// memory than another one, in the sinks and as a dead letter.
func TestDrain_BesideARowOfEscapesMemoryIsBounded(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	for name, c := range map[string]struct {
		column, sink, failure string // what the dead letter's error has; "" if there is none
	}{
		"stdout key":      {"key", "stdout: {}", "the limit is 134217728"},
		"exec payload":    {"payload", "exec: {command: [/bin/cat]}", "the limit is 16777216"},
		"exec key":        {"key", "exec: {command: [/bin/cat]}", "the limit is 16777216"},
		"webhook payload": {"payload", "webhook: {url: '" + receiver.URL + "', format: cloudevents_structured}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			address, pool := database(t, 0)
			execute(t, pool, `
				CREATE TABLE public.large (
					id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
					created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
					key text,
					payload text
				);
				CREATE INDEX ON public.large (created_at, id);
				INSERT INTO public.large (`+c.column+`) VALUES (repeat(E'\x01', 60000000));`)
			p := start(t, address, "run", "-c", file(t, `
processes:
  large:
    source: {table: public.large, columns: {key: key, payload: payload}}
    start: beginning
    on_poison: dead_letter
    retry: {attempts: 1}
    sink: {`+c.sink+`}`))
			defer p.stop()
			require.Eventually(t, func() bool { return sequenceOr0(t, pool, "large") == 1 }, patience, tick)
			if most, known := peak(t, p.cmd.Process.Pid); known {
				t.Logf("peak %d MiB", most>>20)
				require.Less(t, most, 512<<20)
			}
			failure := text(t, pool, `SELECT coalesce(max(error), '') FROM public.dead_letter`)
			if c.failure == "" {
				require.Empty(t, failure)
			}
			require.Contains(t, failure, c.failure)
		})
	}
}
