package prove

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestTooLong_IsTheCodeOfTheError(t *testing.T) {
	t.Parallel()
	const step = "name a position with --after"
	require.ErrorContains(t, tooLong(fmt.Errorf("look: %w", &pgconn.PgError{Code: "57014", Message: "m"})), step)
	require.NotContains(t, tooLong(errors.New("no record 57014")).Error(), step)
}
