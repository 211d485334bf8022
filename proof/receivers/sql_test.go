package receivers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// outcomes of inbox_receive, by the answer that they ask for.
var outcomes = map[int]string{http.StatusConflict: "stale", http.StatusPreconditionRequired: "gap"}

// The signature is checked before SQL, so the vectors with 401 are left out.
func TestSQL_DecidesAsTheTestVectorsSay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	script, err := os.ReadFile(filepath.Join(sources, "sql", "inbox.sql"))
	require.NoError(t, err)
	pgtest.Exec(t, pool, string(script))
	text, err := os.ReadFile("../../docs/wire-vectors.json")
	require.NoError(t, err)
	var file struct {
		Vectors []struct {
			Name       string
			RefuseGaps bool `json:"refuse_gaps"`
			Before     struct {
				Epoch, Sequence int64
				DedupKeys       []string `json:"dedup_keys"`
			}
			Headers       map[string]string
			Status        int
			Applied       bool
			AnswerHeaders map[string]string `json:"answer_headers"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	checked := 0
	for _, v := range file.Vectors {
		if v.Status == http.StatusUnauthorized {
			continue
		}
		checked++
		process, err := url.PathUnescape(v.Headers["ordered-process"])
		require.NoError(t, err)
		pgtest.Exec(t, pool, "TRUNCATE public.inbox, public.inbox_process")
		if v.Before.Epoch > 0 {
			pgtest.Exec(t, pool, "INSERT INTO public.inbox_process VALUES ('c', $1, $2, $3)", process, v.Before.Epoch, v.Before.Sequence)
		}
		pgtest.Exec(t, pool, "INSERT INTO public.inbox SELECT 'c', $1, k FROM unnest($2::text[]) AS k", process, v.Before.DedupKeys)
		const receiveSQL = "SELECT outcome || ' ' || number FROM public.inbox_receive('c', $1, $2, $3, $4, $5)"
		epoch, sequence := number(t, v.Headers["ordered-epoch"]), number(t, v.Headers["ordered-sequence"])
		got := pgtest.Value[string](t, pool, receiveSQL, process, epoch, sequence, v.Headers["ordered-dedup-key"], v.RefuseGaps)
		want := outcomes[v.Status]
		switch {
		case v.Applied:
			want = "apply " + v.Headers["ordered-sequence"]
		case v.Status == http.StatusOK:
			want = "duplicate " + v.Headers["ordered-sequence"]
		default:
			want += " " + v.AnswerHeaders["ordered-epoch"] + v.AnswerHeaders["ordered-sequence"]
		}
		require.Equal(t, want, got, v.Name)
		noted := pgtest.Value[bool](t, pool, "SELECT EXISTS (SELECT FROM public.inbox WHERE dedup_key = $1)", v.Headers["ordered-dedup-key"])
		repeated := strings.Contains(strings.Join(v.Before.DedupKeys, "\n"), v.Headers["ordered-dedup-key"])
		require.Equal(t, v.Applied || repeated, noted, v.Name)
	}
	require.GreaterOrEqual(t, checked, 15)
}

func TestSQL_TwoAtOnceApplyOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	script, err := os.ReadFile(filepath.Join(sources, "sql", "inbox.sql"))
	require.NoError(t, err)
	pgtest.Exec(t, pool, string(script))
	for i := range 30 {
		var got [4]string
		var group sync.WaitGroup
		for j := range got {
			group.Go(func() {
				_ = pool.QueryRow(t.Context(), "SELECT outcome FROM public.inbox_receive('c', 'p', 1, $1, $2)", i+1, strconv.Itoa(i)).Scan(&got[j])
			})
		}
		group.Wait()
		require.ElementsMatch(t, []string{"apply", "duplicate", "duplicate", "duplicate"}, got[:])
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
