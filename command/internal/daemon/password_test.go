package daemon_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// Not parallel: it sets a variable.
func TestSecrets_HaveThePasswordWhereverItCameFrom(t *testing.T) {
	t.Setenv("PGPASSWORD", "of-the-environment")
	require.Equal(t, "[secret]", daemon.Config{Database: "postgres://u@h/d"}.Secrets().Replace("of-the-environment"))
	require.Equal(t, "[secret]", daemon.Config{Database: "postgres://u:of-the-url@h/d"}.Secrets().Replace("of-the-url"))
	require.Equal(t, "text", daemon.Config{Database: "postgres://%"}.Secrets().Replace("text"))
}

func TestMasked_NoAttributeHasASecret(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	secrets := daemon.Config{Database: "postgres://u:swordfish@h/d"}.Secrets
	log := daemon.Masked(daemon.NewLogger(&b, slog.LevelInfo), secrets)
	log.With("with", "a swordfish").WithGroup("g").Info("it said swordfish", "err", errors.New("no swordfish"), "n", 7,
		slog.Group("inner", "text", "swordfish"), "list", []string{"swordfish"}, "kept", []string{"x"})
	require.NotContains(t, b.String(), "swordfish")
	require.Contains(t, b.String(), `"with":"a [secret]"`)
	require.Contains(t, b.String(), `"err":"no [secret]","n":7,"inner":{"text":"[secret]"},"list":"[[secret]]","kept":["x"]`)
}
