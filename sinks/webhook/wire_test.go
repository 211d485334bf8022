package webhook

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// answers returns the rows of the table in docs/wire.md that a status alone decides, by the status or by its hundred, as
// "4xx": the classes for a URL that is the same for all records, and for one that is made of the record.
func answers(t *testing.T) (fixed, made map[string]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "| answer | class | the process |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ := strings.Cut(rest, "\n\n")
	fixed, made = map[string]string{}, map[string]string{}
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		require.Len(t, cells, 5, row)
		if strings.Contains(cells[1], "`Ordered-") {
			continue
		}
		class := strings.Trim(cells[2], " `")
		for _, status := range regexp.MustCompile(`\b\d(\d\d|xx)\b`).FindAllString(cells[1], -1) {
			require.NotContains(t, fixed, status)
			fixed[status], made[status] = class, class
			if _, other, found := strings.Cut(cells[3], "If `url` is made of the record: `"); found {
				made[status], _, _ = strings.Cut(other, "`")
			}
		}
	}
	return fixed, made
}

func TestDeliver_TheTableOfThePageHasEachAnswer(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		status, err := strconv.Atoi(strings.Split(r.URL.Path, "/")[1])
		if err == nil {
			w.WriteHeader(status)
		}
	})
	fixed, made := answers(t)
	for path, classes := range map[string]map[string]string{"": fixed, "/{{.Key}}": made} {
		for status := 200; status < 600; status++ {
			text := strconv.Itoa(status)
			want, named := classes[text]
			if !named {
				want, named = classes[text[:1]+"xx"]
			}
			require.True(t, named, status)
			sink := newSink(t, Config{URL: server.URL + "/" + text + path})
			require.Equal(t, want, sinktest.Class(sink.Deliver(t.Context(), delivery())), status)
			hangUp(sink)
		}
	}
}
