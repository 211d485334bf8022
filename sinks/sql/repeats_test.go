package sql_test

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

func repeating(password string) *pgproto3.ErrorResponse {
	forms := secrettest.Forms(password)
	return &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: secrettest.Words + forms + "\n", Detail: forms, Hint: forms}
}

func TestGuard_AServerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	for where, at := range map[string]tcptest.Moment{"at the login": tcptest.Login, "in an answer": tcptest.Statement} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			address := tcptest.Postgres(t, at, repeating)
			for _, hide := range []bool{false, true} {
				remote := sinktest.Made(t, sql.NewRemote, sql.Config{
					URL:        "postgres://u:" + url.QueryEscape(secrettest.Canary) + "@" + address + "/d?sslmode=disable",
					Statements: []string{"SELECT 1"}, HideAnswers: hide,
				})
				_, err := remote.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
				for _, err := range []error{err, remote.Check(t.Context())} {
					require.ErrorContains(t, err, "28P01")
					secrettest.RequireMasked(t, err, hide)
				}
			}
		})
	}
}
