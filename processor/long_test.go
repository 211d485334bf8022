package processor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

func TestLog_ALongIDIsCut(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `CREATE TABLE dispatch.named (id text NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE UNIQUE INDEX ON dispatch.named (created_at, id);
		INSERT INTO dispatch.named (id) VALUES (repeat('i', 200000))`)
	source := sourceOf(t, pool, table.Config{Table: "dispatch.named"})
	log := &logbook{}
	sink := &receiver{answer: func(context.Context, processor.Delivery) error { return processor.Permanent(errors.New("no")) }}
	start(t, process(t, pool, processor.Each(sink), func(c *processor.Config) { c.Logger, c.Source = log.logger(), source }))
	eventually(t, "it halts", func() bool { return log.has("halted") })
	require.True(t, log.has("(200000 bytes, sha256 "))
	require.False(t, log.has(strings.Repeat("i", 1000)))
}
