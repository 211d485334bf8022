package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNew_ReturnsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{
		Table:    "a.b.c",
		Order:    "name",
		Latency:  -1,
		MaxBytes: -1,
		Columns:  Columns{ID: "a.id", Key: "two words"},
	})
	for _, fault := range []string{
		"source: ", `order must be created_at or id, got "name"`, "latency must be between 1µs and 1m0s, got -1ns", "max_bytes must be at least 1, got -1",
		"table: name a.b.c has more than a schema and a name", `column "a.id": a column has no qualifier`, "column: name two words",
	} {
		require.ErrorContains(t, err, fault)
	}
	_, err = New(nil, Config{Table: "app." + strings.Repeat("b", 64)})
	require.ErrorContains(t, err, "has 64 bytes, and PostgreSQL keeps only 63: use the name as the catalog has it")
}
