package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParse_RefusesTwoProcessesOnWhatBelongsToOne: each would put the other out, by turns.
func TestParse_RefusesTwoProcessesOnWhatBelongsToOne(t *testing.T) {
	t.Parallel()
	two := func(a, b string) error {
		_, err := parse("processes:\n  a: {source: {table: t}, sink: {" + a + "}}\n  b: {source: {table: t}, sink: {" + b + "}}\n")
		return err
	}
	kafka := func(id string) string { return `kafka: {brokers: ["h:9092"], topic: o, transactional_id: ` + id + `}` }
	nats := func(stream, fence string) string {
		return `nats: {url: "nats://h:4222", stream: ` + stream + `, subject: "orders.x", fence: "` + fence + `"}`
	}
	require.ErrorContains(t, two(kafka("pay"), kafka("pay")), `3:3: processes.b: its sink has the transactional_id pay at h:9092, and so has that of process "a": give each process a transactional_id of its own`)
	require.ErrorContains(t, two(nats("ORDERS", "fence.x"), nats("ORDERS", "fence.x")), `its sink has the fence fence.x of stream "ORDERS"`)
	require.ErrorContains(t, two(nats("ORDERS", "fence.{{if .Process}}x{{end}}"), nats("ORDERS", "fence.{{if .Process}}x{{end}}")), `its sink has the fence fence.x of stream`, "templates that print the same")
	require.ErrorContains(t, two(nats("ORDERS", "fence.{{.Type}}"), nats("ORDERS", "fence.{{.Type}}")), `its sink has the fence`, "the process alone counts")
	require.NoError(t, two(kafka("pay"), kafka("ship")))
	require.NoError(t, two(nats("ORDERS", "fence.x"), nats("OTHERS", "fence.x")))
	require.NoError(t, two(nats("ORDERS", "fence.{{.Process}}"), nats("ORDERS", "fence.{{.Process}}")))
	require.NoError(t, two(`kafka: {brokers: ["h:9092"], topic: o}`, `kafka: {brokers: ["h:9092"], topic: o}`))
}
