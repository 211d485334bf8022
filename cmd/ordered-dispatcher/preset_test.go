package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A preset is all that the table which the program prints needs, and Debezium's table once it has a time.
func TestPreset_NamesTheColumnsOfAKnownTable(t *testing.T) {
	t.Parallel()
	for preset, rows := range map[string]string{
		"outbox": `INSERT INTO public.outbox (aggregate_type, aggregate_id, key, type, payload, headers)
			VALUES ('booking', '4711', 'k', 'booking.created', '{"seats": 2}', '{"tenant": "x"}')`,
		"debezium": `DROP TABLE public.outbox;
			CREATE TABLE public.outbox (id uuid PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload jsonb);
			ALTER TABLE public.outbox ADD created_at timestamptz NOT NULL DEFAULT clock_timestamp();
			CREATE INDEX ON public.outbox (created_at, id);
			INSERT INTO public.outbox (id, aggregatetype, aggregateid, type, payload)
			VALUES ('00000000-0000-0000-0000-000000000001', 'booking', 'k', 'booking.created', '{"seats": 2}')`,
	} {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			address, pool := database(t, 0)
			pgtest.Exec(t, pool, must(t, address, "migrate", "outbox"))
			pgtest.Exec(t, pool, rows)
			config := file(t, "processes:\n  a: {source: {table: public.outbox, preset: "+preset+"}, sink: {stdout: {}}, start: beginning}\n")
			require.Contains(t, must(t, address, "doctor", "-c", config), "0 errors, 0 warnings")
			out := must(t, address, "run", "--drain", "-c", config)
			require.Contains(t, out, `"key":"k","type":"booking.created"`)
			require.Contains(t, out, `"payload":{"seats":2}`)
			require.Equal(t, preset == "outbox", strings.Contains(out, `"headers":{"tenant":"x"}`), out)
		})
	}
}

func TestPreset_AColumnThatIsNamedComesBefore(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	pgtest.Exec(t, pool, must(t, address, "migrate", "outbox", "--table=public.events", "--raw"))
	pgtest.Exec(t, pool, `INSERT INTO public.events (aggregate_id, key, type, payload) VALUES ('4711', 'k', 'booking.created', '\x7b7d')`)
	config := file(t, "processes:\n  a: {source: {table: public.events, preset: outbox, columns: {key: aggregate_id}}, sink: {stdout: {}}, start: beginning}\n")
	require.Contains(t, must(t, address, "run", "--drain", "-c", config), `"key":"4711","type":"booking.created"`)
}
