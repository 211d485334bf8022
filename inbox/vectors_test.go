package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// vector is one of docs/wire-vectors.json.
type vector struct {
	Name       string   `json:"name"`
	Secrets    []string `json:"secrets"`
	Now        int64    `json:"now"`
	RefuseGaps bool     `json:"refuse_gaps"`
	Before     struct {
		Epoch     int64    `json:"epoch"`
		Sequence  int64    `json:"sequence"`
		DedupKeys []string `json:"dedup_keys"`
	} `json:"before"`
	Headers       map[string]string `json:"headers"`
	Body          []byte            `json:"body_base64"`
	Status        int               `json:"status"`
	Applied       bool              `json:"applied"`
	AnswerHeaders map[string]string `json:"answer_headers"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../docs/wire-vectors.json")
	require.NoError(t, err)
	var file struct {
		Version int      `json:"version"`
		Vectors []vector `json:"vectors"`
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.Equal(t, 1, file.Version)
	require.GreaterOrEqual(t, len(file.Vectors), 30)
	return file.Vectors
}

// The program that makes the vectors signs by itself. So they are those that it makes, and not edited by hand.
func TestVectors_AreThoseOfTheirProgram(t *testing.T) {
	t.Parallel()
	made, err := exec.CommandContext(t.Context(), brokertest.Python(t, "json"), "../tools/wire-vectors").Output()
	require.NoError(t, err)
	text, err := os.ReadFile("../docs/wire-vectors.json")
	require.NoError(t, err)
	require.Equal(t, string(text), string(made))
}

func TestHandler_AnswersAsTheTestVectorsSay(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, v := range vectors(t) {
		pgtest.Exec(t, pool, "TRUNCATE public.inbox, public.inbox_process, public.effect")
		if v.Before.Epoch > 0 {
			process := strings.Replace(v.Headers["ordered-process"], "refunds", "payments", 1)
			pgtest.Exec(t, pool, "INSERT INTO public.inbox_process VALUES ('c', $1, $2, $3)", process, v.Before.Epoch, v.Before.Sequence)
			pgtest.Exec(t, pool, "INSERT INTO public.inbox (receiver, process, dedup_key) SELECT 'c', $1, k FROM unnest($2::text[]) AS k", process, v.Before.DedupKeys)
		}
		h, err := box(t, v.RefuseGaps).Handler(pool, inbox.HandlerConfig{
			Secret: strings.Join(v.Secrets, " "), Now: func() time.Time { return time.Unix(v.Now, 0) },
		}, func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
			require.Equal(t, string(v.Body), string(r.Body), v.Name)
			_, err := tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", r.DedupKey)
			return err
		})
		require.NoError(t, err)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(v.Body))
		for name, value := range v.Headers {
			req.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, req)
		require.Equal(t, v.Status, answer.Code, "%s: %s", v.Name, answer.Body)
		for name, value := range v.AnswerHeaders {
			require.Equal(t, value, answer.Header().Get(name), v.Name)
		}
		require.Equal(t, v.Applied, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.effect") == 1, v.Name)
	}
}
