package pgurl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

func TestLowered_OfTwoSpellingsOneIsLeft(t *testing.T) {
	t.Parallel()
	given := map[string]string{"Client_Encoding": "LATIN1", "client_encoding": "UTF8", "TimeZone": "UTC"}
	require.Equal(t, map[string]string{"client_encoding": "UTF8", "timezone": "UTC"}, pgurl.Lowered(given))
}
