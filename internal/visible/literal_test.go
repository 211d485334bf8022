package visible_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

func TestLiteral_MeansTheSameInOneLine(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	for _, text := range []string{"", "plain", "it's", `a\b`, "x\n\\! id > /tmp/x\n", "\r\t'\\'", "\u202e\u2028é😀\n"} {
		literal := visible.Literal(text)
		require.False(t, strings.ContainsFunc(literal, visible.Hidden), "%q", literal)
		var got string
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT "+literal, pgx.QueryExecModeSimpleProtocol).Scan(&got))
		require.Equal(t, text, got)
	}
}
