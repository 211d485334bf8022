package azblob_test

import (
	"context"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets/azblob"
)

// The token is in the URL of each request, and the client quotes that URL when the request fails.
func TestSpec_AnErrorDoesNotShowTheToken(t *testing.T) {
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2026&sig=CANARY%3D")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close()) // nothing listens there
	u, err := url.Parse("azblob://c?storage_account=a&protocol=http&domain=" + address)
	require.NoError(t, err)
	require.NoError(t, azblob.Spec().Check(u))
	opened, err := azblob.Spec().Open(t.Context(), u)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, got := opened.Objects.Get(ctx, "x", 1)
	_, listed := opened.Files.List(ctx, "x")
	for _, err := range []error{got, listed, opened.Reach(ctx), opened.Files.Put(ctx, "x", nil), opened.Objects.Delete(ctx, "x")} {
		require.Error(t, err)
		require.NotContains(t, err.Error(), "CANARY")
		require.False(t, claim.IsAboutObject(err))
	}
	require.NoError(t, opened.Close())
}
