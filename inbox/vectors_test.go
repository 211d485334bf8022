package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// vector is one of docs/wire-vectors.json.
type vector struct {
	Name          string            `json:"name"`
	Secrets       []string          `json:"secrets"`
	Now           float64           `json:"now"`
	RefuseGaps    bool              `json:"refuse_gaps"`
	Process       string            `json:"process"`
	Before        notes             `json:"before"`
	Headers       [][2]string       `json:"headers"`
	Body          []byte            `json:"body_base64"`
	Effect        string            `json:"effect"`
	Status        int               `json:"status"`
	AnswerHeaders map[string]string `json:"answer_headers"`
	Applied       bool              `json:"applied"`
	After         notes             `json:"after"`
}

// notes is what a receiver has noted of a process.
type notes struct {
	Origin    string   `json:"origin"`
	Epoch     int64    `json:"epoch"`
	Sequence  int64    `json:"sequence"`
	DedupKeys []string `json:"dedup_keys"`
}

func (n notes) put(t *testing.T, pool *pgxpool.Pool, process string) {
	t.Helper()
	pgtest.Exec(t, pool, "TRUNCATE public.inbox, public.inbox_process, public.effect")
	if n.Origin != "" {
		pgtest.Exec(t, pool, "INSERT INTO public.inbox_process VALUES ('c', $1, '', $2, $3, $4)", process, n.Origin, n.Epoch, n.Sequence)
	}
	pgtest.Exec(t, pool, "INSERT INTO public.inbox (receiver, process, dedup_key) SELECT 'c', $1, k FROM unnest($2::text[]) AS k", process, n.DedupKeys)
}

func noted(t *testing.T, pool *pgxpool.Pool, process string) notes {
	t.Helper()
	const sql = `SELECT jsonb_build_object('origin', coalesce(max(origin), ''), 'epoch', coalesce(max(epoch), 0), 'sequence', coalesce(max(sequence), 0),
		'dedup_keys', (SELECT coalesce(jsonb_agg(dedup_key ORDER BY dedup_key COLLATE "C"), '[]') FROM public.inbox WHERE process = $1))
		FROM public.inbox_process WHERE process = $1`
	var n notes
	require.NoError(t, json.Unmarshal(pgtest.Value[[]byte](t, pool, sql, process), &n))
	return n
}

// brokerVector is a message of a broker in docs/wire-vectors.json. Message is what is read in a record.
type brokerVector struct {
	Name     string   `json:"name"`
	Protocol string   `json:"protocol"`
	Headers  [][2]any `json:"headers"`
	Outcome  string   `json:"outcome"`
	Message  struct {
		Process         string `json:"process"`
		Origin          string `json:"origin"`
		Sequence        int64  `json:"sequence"`
		Epoch           int64  `json:"epoch"`
		DedupKey        string `json:"dedup_key"`
		Replay          bool   `json:"replay"`
		ClaimCheck      bool   `json:"claim_check"`
		ContentEncoding string `json:"content_encoding"`
	} `json:"message"`
}

type vectorFile struct {
	Version  int            `json:"version"`
	Vectors  []vector       `json:"vectors"`
	Messages []brokerVector `json:"messages"`
}

func vectors(t *testing.T) (file vectorFile) {
	t.Helper()
	text, err := os.ReadFile("../docs/wire-vectors.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &file))
	require.Equal(t, 1, file.Version)
	require.GreaterOrEqual(t, len(file.Vectors), 70)
	require.GreaterOrEqual(t, len(file.Messages), 30)
	return file
}

func TestFromHeaders_ReadsAsTheTestVectorsSay(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t).Messages {
		read := inbox.FromHeaders
		if v.Protocol == "nats" {
			read = inbox.FromNATS
		}
		m, err := read("", func(name string) string {
			for _, h := range v.Headers {
				if h[0] == name {
					return fmt.Sprint(h[1])
				}
			}
			return ""
		})
		require.Equal(t, v.Outcome, outcomeOf(err), "%s: %v", v.Name, err)
		if w := v.Message; err == nil {
			require.Equal(t, inbox.Message{
				Process: w.Process, Origin: w.Origin, Sequence: w.Sequence, Epoch: w.Epoch, DedupKey: w.DedupKey,
				Replay: w.Replay, ClaimCheck: w.ClaimCheck, ContentEncoding: w.ContentEncoding,
			}, m, v.Name)
		}
	}
}

func outcomeOf(err error) string {
	var other *inbox.VersionError
	switch {
	case err == nil:
		return "record"
	case errors.Is(err, inbox.ErrClaim):
		return "claim"
	case errors.Is(err, inbox.ErrMessage):
		return "no record"
	case errors.As(err, &other):
		return "another version"
	}
	return err.Error()
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
	for _, v := range vectors(t).Vectors {
		v.Before.put(t, pool, v.Process)
		h, err := box(t, v.RefuseGaps).Handler(pool, inbox.HandlerConfig{
			Secret: strings.Join(v.Secrets, " "), Now: func() time.Time { return time.UnixMilli(int64(v.Now * 1000)) }, Logger: quiet,
		}, v.effect(t))
		require.NoError(t, err)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(v.Body))
		for _, h := range v.Headers {
			req.Header.Add(h[0], h[1])
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, req)
		require.Equal(t, v.Status, answer.Code, "%s: %s", v.Name, answer.Body)
		for _, name := range []string{"ordered-version", "ordered-origin", "ordered-epoch", "ordered-sequence"} {
			require.Equal(t, v.AnswerHeaders[name], answer.Header().Get(name), v.Name)
		}
		require.Equal(t, v.Applied, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.effect") == 1, v.Name)
		require.Equal(t, v.After, noted(t, pool, v.Process), v.Name)
	}
}

// effect applies the record of a vector, or fails as the vector asks for.
func (v vector) effect(t *testing.T) inbox.Effect {
	return func(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
		require.Equal(t, string(v.Body), string(r.Body), v.Name)
		_, err := tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", r.DedupKey)
		switch v.Effect {
		case "fails":
			err = errors.New("the account is locked")
		case "fails for good":
			err = fmt.Errorf("no such account: %w", inbox.ErrPoison)
		default:
			require.Equal(t, "applies", v.Effect, v.Name)
		}
		return err
	}
}
