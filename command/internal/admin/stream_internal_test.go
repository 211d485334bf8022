package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// What everybody may have takes no place of a stream, and the page of a process whose name ends so is none.
func TestIsStream_IsAboutThePathAsItIsSpelled(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/live": true, "/api/v1/events": true, "/processes/a/live": true, "/processes/live/live": true, "/processes/tenant%2Flive/live": true,
		"/assets/live": false, "/processes/live": false, "/processes/tenant%2Flive": false, "/login/live": false,
	} {
		require.Equal(t, want, isStream(httptest.NewRequest(http.MethodGet, path, nil)), path)
	}
}
