package gs_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/gs"
)

// gocloud's own opener keeps the first failure for ever, and prints to standard output.
func TestOpen_MissingCredentialsAreAnErrorUntilTheyAreThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	u, err := url.Parse("gs://b")
	require.NoError(t, err)
	_, err = gs.Spec().Open(t.Context(), u)
	require.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte(`{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}`), 0o600))
	opened, err := gs.Spec().Open(t.Context(), u)
	require.NoError(t, err)
	require.NoError(t, opened.Close())
}

// What the protocol of Google says of an object that is not there, against a bucket that is, and one that is not.
func TestOpen_AMissingObjectIsNotAMissingBucket(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/b/there/o") {
			_, _ = w.Write([]byte(`{"kind": "storage#objects", "items": []}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error": {"code": 404, "message": "not found"}}`))
	}))
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	for bucket, missing := range map[string]bool{"there": true, "away": false} {
		opened, err := gs.Spec().Open(t.Context(), &url.URL{Scheme: "gs", Host: bucket})
		require.NoError(t, err)
		_, err = opened.Objects.Get(t.Context(), strings.Repeat("0", 32), 10)
		require.Error(t, err)
		require.Equal(t, missing, claim.IsAboutObject(err), err)
		require.Equal(t, missing, opened.Reach(t.Context()) == nil)
		require.NoError(t, opened.Close())
	}
}
