package packed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
)

func TestFault_NamesWhatIsPacked(t *testing.T) {
	t.Parallel()
	for _, whole := range []map[string]string{nil, {"tenant": "x"}, {"content-encoding": ""}, {"content-encoding": "identity"}} {
		require.NoError(t, packed.Fault(whole), whole)
	}
	require.ErrorContains(t, packed.Fault(map[string]string{"content-encoding": "zstd"}), "its payload is compressed, which this process passes on")
	require.ErrorContains(t, packed.Fault(map[string]string{"content-encoding": "zstd", "claim-check": "8f"}), "its payload is a claim check, which this process passes on")
	require.Error(t, packed.Fault(map[string]string{"claim-check": ""}))
}

func TestEncoded_PassesOnNoTextOfTheRow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "identity": "", "zstd": "zstd", "gzip, zstd": "gzip, zstd", "x\r\nSmith": "unknown", "é": "unknown", strings.Repeat("a", 65): "unknown"} {
		require.Equal(t, want, packed.Encoded(map[string]string{"content-encoding": text}), text)
	}
	require.Empty(t, packed.Encoded(nil))
}
