package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

func TestLatency_TheTextSaysThatItIsOfTheLatestDelivery(t *testing.T) {
	t.Parallel()
	seconds := 120.0
	p := desk.Process{Series: []desk.Point{{}, {Latency: &seconds}, {}}}
	require.Equal(t, "From creation to delivery: the latest took 2 min", latencyText(p))
	require.Contains(t, seriesOf(p), `"latency":[null,120,null]`)
	require.Equal(t, "From creation to delivery: no delivery was seen in this time", latencyText(desk.Process{Series: []desk.Point{{}}}))
}

// The time is that of the row, which an attempt that fails changes, too.
func TestFacts_ACursorThatNeverMovedDoesNotSayThatItDid(t *testing.T) {
	t.Parallel()
	at := time.Now().UTC()
	var names []string
	for _, f := range newFacts(desk.Process{Line: desk.Line{MovedAt: &at}}) {
		names = append(names, f.Name)
		require.True(t, f.Name != "row changed" || f.Value.Short == newMoment(at).Text)
	}
	require.Contains(t, names, "row changed")
	require.NotContains(t, names, "moved")
}

func TestActions_SayOfWhichVerbsAReasonIsRequired(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/processes/a", nil)
	r = r.WithContext(visitor.With(r.Context(), visitor.Visitor{Operate: true}))
	all := []desk.Verb{desk.Retry, desk.Skip, desk.Resume, desk.Pause, desk.Seek}
	c := New(Config{Logger: slog.New(slog.DiscardHandler)})
	page := c.render("process", "actions", newActions(r, desk.Process{Line: desk.Line{Configured: true}, Verbs: all}))
	require.NotContains(t, page, "until you give a reason")
	for _, verb := range all {
		form := regexp.MustCompile(`(?s)<input type="hidden" name="verb" value="` + string(verb) + `">.*?</form>`).FindString(page)
		require.NotEmpty(t, form, verb)
		if verb.NeedsReason() {
			require.Contains(t, form, "Needs a reason.", verb)
		} else {
			require.NotContains(t, form, "reason", verb)
		}
	}
}
