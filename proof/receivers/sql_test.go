package receivers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// vector is one of docs/wire-vectors.json, without what concerns its signature.
type vector struct {
	Name          string
	RefuseGaps    bool `json:"refuse_gaps"`
	Process       string
	Before        notes
	Headers       [][2]string
	Effect        string
	Status        int
	Applied       bool
	AnswerHeaders map[string]string `json:"answer_headers"`
	After         notes
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
	pgtest.Exec(t, pool, "TRUNCATE public.inbox, public.inbox_process")
	if n.Origin != "" {
		pgtest.Exec(t, pool, "INSERT INTO public.inbox_process VALUES ('c', $1, '', $2, $3, $4)", process, n.Origin, n.Epoch, n.Sequence)
	}
	pgtest.Exec(t, pool, "INSERT INTO public.inbox (receiver, process, dedup_key) SELECT 'c', $1, k FROM unnest($2::text[]) AS k", process, n.DedupKeys)
}

func noted(t *testing.T, pool *pgxpool.Pool, process string) (n notes) {
	t.Helper()
	const sql = `SELECT jsonb_build_object('origin', coalesce(max(origin), ''), 'epoch', coalesce(max(epoch), 0), 'sequence', coalesce(max(sequence), 0),
		'dedup_keys', (SELECT coalesce(jsonb_agg(dedup_key ORDER BY dedup_key COLLATE "C"), '[]') FROM public.inbox WHERE process = $1))
		FROM public.inbox_process WHERE process = $1`
	require.NoError(t, json.Unmarshal(pgtest.Value[[]byte](t, pool, sql, process), &n))
	return n
}

// headers returns the headers of a request, decoded. It reports whether one of them came twice.
func (v vector) headers(t *testing.T) (headers map[string]string, doubled bool) {
	headers = map[string]string{}
	for _, h := range v.Headers {
		name := strings.ToLower(h[0])
		_, there := headers[name]
		value, err := url.PathUnescape(h[1])
		require.NoError(t, err)
		headers[name], doubled = value, doubled || there
	}
	return headers, doubled
}

// answers is what a program answers to an outcome of inbox_receive, as the page has it.
var answers = map[string]struct {
	status int
	header string
}{
	"apply": {http.StatusOK, ""}, "duplicate": {http.StatusOK, ""}, "origin": {http.StatusConflict, "ordered-origin"},
	"stale": {http.StatusConflict, "ordered-epoch"}, "late": {http.StatusConflict, "ordered-sequence"},
	"gap": {http.StatusPreconditionRequired, "ordered-sequence"},
}

var digits = regexp.MustCompile(`^[0-9]{1,19}$`)

// receive does with a request, whose headers are decoded, what the page of SQL has a program do after its signature.
func (v vector) receive(t *testing.T, pool *pgxpool.Pool, headers map[string]string) (status int, header map[string]string) {
	h := func(name string) string { return headers["ordered-"+name] }
	header = map[string]string{}
	switch h("version") {
	case "1":
	case "":
		return http.StatusBadRequest, header
	default:
		return http.StatusConflict, map[string]string{"ordered-version": "1"}
	}
	if !digits.MatchString(h("sequence")) || !digits.MatchString(h("epoch")) {
		return http.StatusBadRequest, header
	}
	if h("test") == "true" {
		return http.StatusOK, header
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		const enterSQL = "SELECT public.inbox_enter('c', $1, $2, $3::text::bigint, $4::text::bigint, $5)"
		if _, err := tx.Exec(t.Context(), enterSQL, h("process"), h("origin"), h("epoch"), h("sequence"), h("replay") == "true"); err != nil {
			return err
		}
		effect, err := tx.Begin(t.Context()) // a savepoint
		if err != nil {
			return err
		}
		const receiveSQL = "SELECT outcome, coalesce(answer, '') FROM public.inbox_receive('c', $1, $2, $3::text::bigint, $4::text::bigint, $5, $6, $7)"
		var outcome, answer string
		err = effect.QueryRow(t.Context(), receiveSQL, h("process"), h("origin"), h("epoch"), h("sequence"), h("dedup-key"), h("replay") == "true", v.RefuseGaps).
			Scan(&outcome, &answer)
		if err != nil {
			return err
		}
		require.Contains(t, answers, outcome, v.Name)
		status = answers[outcome].status
		if name := answers[outcome].header; name != "" {
			header[name] = answer
		}
		if outcome == "apply" && v.Effect != "applies" {
			status = map[string]int{"fails": http.StatusServiceUnavailable, "fails for good": http.StatusUnprocessableEntity}[v.Effect]
			return effect.Rollback(t.Context())
		}
		require.Equal(t, v.Applied, outcome == "apply", v.Name)
		return effect.Commit(t.Context())
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code[:2] == "22" {
		return http.StatusBadRequest, header
	}
	require.NoError(t, err, v.Name)
	return status, header
}

// A program checks signatures before SQL, so the vectors with 401 are left out, and those with a header that comes twice.
func TestSQL_DecidesAsTheTestVectorsSay(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	text, err := os.ReadFile("../../docs/wire-vectors.json")
	require.NoError(t, err)
	var file struct{ Vectors []vector }
	require.NoError(t, json.Unmarshal(text, &file))
	checked := 0
	for _, v := range file.Vectors {
		headers, doubled := v.headers(t)
		if doubled || v.Status == http.StatusUnauthorized {
			continue
		}
		checked++
		v.Before.put(t, pool, v.Process)
		status, header := v.receive(t, pool, headers)
		require.Equal(t, v.Status, status, v.Name)
		require.Equal(t, v.AnswerHeaders, header, v.Name)
		require.Equal(t, v.After, noted(t, pool, v.Process), v.Name)
	}
	require.GreaterOrEqual(t, checked, 50)
}

// brokerVector is a message of a broker in docs/wire-vectors.json.
type brokerVector struct {
	Name, Protocol, Outcome string
	Headers                 [][2]any
	Message                 *struct {
		Process, Origin string
		Sequence, Epoch int64
		Key             string `json:"dedup_key"`
		Replay          bool
	}
}

// headers returns the headers of a message as text. Those of NATS are decoded.
func (v brokerVector) headers() map[string]string {
	headers := map[string]string{}
	for _, h := range v.Headers {
		text := fmt.Sprint(h[1])
		if plain, err := url.PathUnescape(text); err == nil && v.Protocol == "nats" {
			text = plain
		}
		headers[fmt.Sprint(h[0])] = text
	}
	return headers
}

// A program decodes the headers of a message, and recognizes the claim of a worker, as the page of SQL has it.
func TestSQL_ReadsMessagesOfBrokersAsTheTestVectorsSay(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	text, err := os.ReadFile("../../docs/wire-vectors.json")
	require.NoError(t, err)
	var file struct{ Messages []brokerVector }
	require.NoError(t, json.Unmarshal(text, &file))
	require.GreaterOrEqual(t, len(file.Messages), 30)
	statuses := map[string]int{"record": http.StatusOK, "another version": http.StatusConflict, "no record": http.StatusBadRequest, "claim": http.StatusBadRequest}
	for _, v := range file.Messages {
		headers := v.headers()
		claim := headers["ordered-process"]+headers["Nats-Marker-Reason"] != "" && headers["ordered-version"]+headers["ordered-dedup-key"] == ""
		require.Equal(t, v.Outcome == "claim", claim, v.Name)
		notes{}.put(t, pool, "")
		status, _ := vector{Name: v.Name, Effect: "applies", Applied: true}.receive(t, pool, headers)
		require.Equal(t, statuses[v.Outcome], status, v.Name)
		if v.Message == nil {
			require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox"), v.Name)
			continue
		}
		want := notes{Origin: v.Message.Origin, Epoch: v.Message.Epoch, Sequence: v.Message.Sequence, DedupKeys: []string{v.Message.Key}}
		if v.Message.Replay {
			want.Epoch, want.Sequence = 0, 0
		}
		require.Equal(t, want, noted(t, pool, v.Message.Process), v.Name)
	}
}

func sqlReceiver(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	script, err := os.ReadFile(filepath.Join(sources, "sql", "inbox.sql"))
	require.NoError(t, err)
	pgtest.Exec(t, pool, string(script))
	return pool
}

func TestSQL_TwoAtOnceApplyOnce(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	for _, streams := range [][4]string{{}, {"0", "1", "2", "3"}} {
		for i := range 30 {
			var got [4]string
			var group sync.WaitGroup
			for j := range got {
				group.Go(func() {
					_ = pool.QueryRow(t.Context(), "SELECT outcome FROM public.inbox_receive('c', 'p', 'o', 1, $1, $2, false, false, $3)",
						i+1, fmt.Sprintf("%d/%s", i, streams[0]), streams[j]).Scan(&got[j])
				})
			}
			group.Wait()
			require.ElementsMatch(t, []string{"apply", "duplicate", "duplicate", "duplicate"}, got[:])
		}
	}
}

func TestSQL_StreamsHaveOneOriginThatAnOperatorAccepts(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	receive := func(origin string, sequence int, key, stream string) string {
		return pgtest.Value[string](t, pool, "SELECT concat_ws(' ', outcome, answer) FROM public.inbox_receive('c', 'p', $1, 5, $2, $3, false, false, $4)",
			origin, sequence, key, stream)
	}
	require.Equal(t, "apply", receive("o", 7, "a", "0"))
	require.Equal(t, "apply", receive("o", 3, "b", "1"))
	require.Equal(t, "origin o", receive("other", 8, "c", "0"))
	require.Equal(t, "origin o", receive("other", 8, "c", "2"))
	require.Equal(t, "apply", receive("o", 9, "c", "0"))
	_, err := pool.Exec(t.Context(), "SELECT public.inbox_receive('c', 'p', 'o', 5, 10, 'd', false, true, '0')")
	require.ErrorContains(t, err, "a stream lacks numbers by nature")
	pgtest.Exec(t, pool, "SELECT public.inbox_accept_origin('c', 'p', 'other')")
	require.Equal(t, "origin other", receive("o", 10, "d", "0"))
	require.Equal(t, "duplicate", receive("other", 1, "a", "0"))
	require.Equal(t, "apply", receive("other", 2, "d", "0"))
	_, err = pool.Exec(t.Context(), "SELECT public.inbox_accept_gap('c', 'p', 8, '9')")
	require.ErrorContains(t, err, "nothing has come from process 'p' in stream '9'")
}

// An answer of GET /records, or a dead letter, comes before the first record of the new epoch. A gap may be accepted.
func TestSQL_AReplayBeginsNoEpoch(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	receive := func(epoch, sequence int, key string, replay bool) string {
		return pgtest.Value[string](t, pool, "SELECT concat_ws(' ', outcome, answer) FROM public.inbox_receive('c', 'p', 'o', $1, $2, $3, $4, true)",
			epoch, sequence, key, replay)
	}
	require.Equal(t, "apply", receive(1, 10, "a", false))
	require.Equal(t, "apply", receive(2, 4, "b", true))
	require.Equal(t, "apply", receive(2, 9, "c", false), "its number is of a row that was deleted")
	require.Equal(t, "stale 2", receive(1, 10, "d", false))
	require.Equal(t, "gap 9", receive(2, 11, "d", false))
	pgtest.Exec(t, pool, "SELECT public.inbox_accept_gap('c', 'p', 10)")
	require.Equal(t, "apply", receive(2, 11, "d", false))
}

// As `process rename` does: the notes go along, so a record that comes again is a duplicate under the new name.
func TestSQL_AProcessGetsAnotherName(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	receive := func(process string, epoch int, key, stream string) string {
		return pgtest.Value[string](t, pool, "SELECT concat_ws(' ', outcome, answer) FROM public.inbox_receive('c', $1, 'o', $2, 1, $3, false, false, $4)",
			process, epoch, key, stream)
	}
	require.Equal(t, "apply", receive("p", 5, "a", ""))
	require.Equal(t, "apply", receive("p", 5, "b", "1"))
	require.Equal(t, "apply", receive("q", 1, "a", ""))
	pgtest.Exec(t, pool, "INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ('other', 'p', 'a')")
	pgtest.Exec(t, pool, "SELECT public.inbox_rename('c', 'p', 'new')")
	require.Equal(t, "duplicate", receive("new", 5, "a", ""))
	require.Equal(t, "stale 5", receive("new", 4, "c", "1"))
	require.Equal(t, 1, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox WHERE process = 'p'"), "the key of another receiver")
	for statement, want := range map[string]string{
		"SELECT public.inbox_rename('c', 'new', 'q')":   "rename process 'new': receiver 'c' has records under the name 'q' already",
		"SELECT public.inbox_rename('c', 'p', 'other')": "rename process 'p': receiver 'c' has no record of it",
		"SELECT public.inbox_rename('c', 'new', '')":    "a receiver, the old name and the new name of a process are needed",
	} {
		_, err := pool.Exec(t.Context(), statement)
		require.ErrorContains(t, err, want)
	}
}

func TestSQL_PruneForgetsOldKeysALittleAtATime(t *testing.T) {
	t.Parallel()
	pool := sqlReceiver(t)
	pgtest.Exec(t, pool, `INSERT INTO public.inbox (receiver, process, dedup_key, received_at)
		SELECT receiver, 'p', n::text, now() - interval '2 days' FROM generate_series(1, 5) n CROSS JOIN (VALUES ('c'), ('other')) AS r (receiver)`)
	pgtest.Exec(t, pool, "INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ('c', 'p', 'young')")
	for _, want := range []int{3, 2, 0} {
		require.Equal(t, want, pgtest.Value[int](t, pool, "SELECT public.inbox_prune('c', interval '1 day', 3)"))
	}
	require.Equal(t, "other:5 young", pgtest.Value[string](t, pool, `SELECT (SELECT 'other:' || count(*) FROM public.inbox WHERE receiver = 'other')
		|| ' ' || string_agg(dedup_key, ' ') FROM public.inbox WHERE receiver = 'c'`))
	for _, statement := range []string{"SELECT public.inbox_prune('c', interval '0')", "SELECT public.inbox_prune('c', interval '1 day', 0)"} {
		_, err := pool.Exec(t.Context(), statement)
		require.ErrorContains(t, err, "a positive interval and a positive number are needed")
	}
}
