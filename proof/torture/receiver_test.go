package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// ground is a receiver whose history can be read.
type ground struct {
	*receiver
	dir string
}

func newGround(t *testing.T) ground {
	t.Helper()
	dir := t.TempDir()
	log, err := history.Create(dir, history.ReceiverActor)
	require.NoError(t, err)
	r, err := newReceiver(history.NewClock(), log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return ground{r, dir}
}

// post delivers a row of a process without a signature.
func (g ground) post(t *testing.T, process string, epoch int) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/"+process+"/A", strings.NewReader("{}"))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Idempotency-Key": "dedup", "Ordered-Key": "k%C3%A9", "Ordered-Position": "at:1", "Ordered-Sequence": "7",
		"Ordered-Epoch": strconv.Itoa(epoch), "Ordered-Attempt": "2",
	} {
		req.Header.Set(name, value)
	}
	client := http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// noted is the history so far, without its times.
func (g ground) noted(t *testing.T) []history.Delivery {
	t.Helper()
	require.NoError(t, g.log.Close())
	require.NoError(t, history.WriteAll(g.dir, history.SettingActor, []history.Setting{{}}))
	run, err := history.Read(g.dir)
	require.NoError(t, err)
	for i := range run.Deliveries {
		run.Deliveries[i].T = 0
	}
	return run.Deliveries
}

const emptyObject = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // SHA-256 of {}

func TestReceiver_NotesWhatItGets(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	require.Equal(t, http.StatusNoContent, g.post(t, "clock_plain", 3).StatusCode)
	require.Equal(t, []history.Delivery{
		{Act: history.Receive, ID: 1, Process: "clock_plain", Worker: "A", Key: "ké", DedupKey: "dedup", Position: "at:1",
			Hash: emptyObject, Sequence: 7, Epoch: 3, Attempt: 2},
		{Act: history.Apply, ID: 1, N: 1},
		{Act: history.Reply, ID: 1, Status: http.StatusNoContent},
	}, g.noted(t))
}

func TestReceiver_RefusesAnOutdatedEpochWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.post(t, "clock_fenced", 3)
	require.Equal(t, http.StatusConflict, g.post(t, "clock_fenced", 2).StatusCode)
	require.Equal(t, http.StatusNoContent, g.post(t, "clock_fenced", 3).StatusCode)
	g.post(t, "clock_plain", 3)
	require.Equal(t, http.StatusNoContent, g.post(t, "clock_plain", 2).StatusCode)
	noted := g.noted(t)
	require.Equal(t, history.Refuse, noted[4].Act)
	require.True(t, noted[0].BadSign, "nobody signed")
}

func TestReceiver_AnswersByScriptOnce(t *testing.T) {
	t.Parallel()
	for kind, want := range map[history.Kind]int{
		history.AnswerError:    http.StatusInternalServerError,
		history.AnswerLie:      http.StatusInternalServerError,
		history.AnswerBusy:     http.StatusTooManyRequests,
		history.AnswerPoison:   http.StatusUnprocessableEntity,
		history.AnswerRedirect: http.StatusFound,
		history.AnswerLate:     http.StatusNoContent,
		history.AnswerReset:    0,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			s := newScript(kind, 5, 0)
			g.arm("clock_plain", s)
			resp := g.post(t, "clock_plain", 1)
			<-s.taken
			require.False(t, g.disarm("clock_plain", s))
			require.Equal(t, want == 0, resp == nil)
			if resp != nil {
				require.Equal(t, want, resp.StatusCode)
			}
			require.Equal(t, http.StatusNoContent, g.post(t, "clock_plain", 1).StatusCode)
			noted := g.noted(t)
			require.Equal(t, 5, noted[0].Fault)
			require.Equal(t, s.applies, noted[1].Act == history.Apply)
		})
	}
}

func TestReceiver_NotesWhoFollowsARedirect(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, elsewhere, nil))
	require.Equal(t, elsewhere, g.noted(t)[0].Process)
}

func TestReceiver_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for _, path := range []string{"/nobody/A", "/clock_plain/A"} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
		require.Equal(t, http.StatusBadRequest, w.Code, path)
	}
	require.Empty(t, g.noted(t))
}
